"""The arrays of a run, by their addresses in its state: a kernel's functions hand on one state, and not forty arrays.

A run keeps its arrays alive, and writes their addresses anew when one is replaced by a larger one (`run`). Each name
here is a function that kernels call with the machine (`state.Machine`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from p2psim.core.compiled import njit
from p2psim.core.events import EVENT
from p2psim.core.philox import intrinsic
from p2psim.network.compiled_engine.state import (
    ABSENCE,
    AGENT,
    CURSOR,
    LAW,
    LINK,
    MESSAGE,
    NODE,
    OWNER,
    PLACE,
    RADIO,
    RECEPTION,
    SENDER,
    STATE,
    TASK,
    TURN,
)

#: Length of an array as kernels see it: who reads it knows how many elements there are.
_MANY = 1 << 40


def _array(name: str, dtype: Any) -> Callable[[Any], np.ndarray]:
    """What gives kernels an array of a run, by its name in the state and the type of its elements."""
    kind = types.Array(from_dtype(np.dtype(dtype)), 1, "C")
    place = STATE.fields[f"at_{name}"][1]

    @intrinsic
    def array(typing_context: Any, m: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(64)
            state = builder.bitcast(builder.extract_value(arguments[0], 0), byte)
            address = builder.load(builder.bitcast(builder.gep(state, [word(place)]), word.as_pointer()))
            made = make_array(kind)(context, builder)
            size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            data = builder.inttoptr(address, made.data.type)
            populate_array(made, data, [word(_MANY)], [word(size)], word(size), None)
            return made._getvalue()

        return kind(m), generate

    return array


#: The array of events.
out = _array("out", EVENT)
#: Agents, and the learner last.
agents = _array("agents", AGENT)
#: 1 where an agent is online; the learner is last.
present = _array("present", np.uint8)
#: 1 where an agent can still make a release.
is_able = _array("is_able", np.uint8)
#: Times of appointments, a heap.
due = _array("due", np.float64)
#: Their messages.
due_messages = _array("due_messages", np.int64)
#: Messages in flight and timers.
messages = _array("messages", MESSAGE)
#: Tasks, a stack.
tasks = _array("tasks", TASK)
#: Elements of lists.
nodes = _array("nodes", NODE)
#: Where each agent's links begin.
indptr = _array("indptr", np.int64)
#: Other ends of links.
indices = _array("indices", np.int32)
#: Laws of random quantities.
laws = _array("laws", LAW)
#: Draws made of each law by each agent.
places = _array("places", np.int64)
#: Where draws of an agent are in the table.
cursors = _array("cursors", CURSOR)
#: Draws that NumPy made.
table = _array("table", np.float64)
#: Times of the agents' next wakes, a heap.
clock_times = _array("clock_times", np.float64)
#: Their agents.
clock_agents = _array("clock_agents", np.int32)
#: Keys of the reasons for missed wakes, two words each.
missed_keys = _array("missed_keys", np.uint64)
#: Of each reason, each agent's chance to miss a wake.
miss_chances = _array("miss_chances", np.float64)
#: Turns of presence, in order.
turns = _array("turns", TURN)
#: Where each group begins in `group_agents`.
group_starts = _array("group_starts", np.int64)
#: Agents of the groups that turn.
group_agents = _array("group_agents", np.int64)
#: Why agents are offline; the learner is last.
absences = _array("absences", ABSENCE)
#: Latency of each link.
travel_times = _array("travel_times", np.float64)
#: Chance that a delivery is lost, of all links or of each.
chances = _array("chances", np.float64)
#: Draws of losses by each sender for what it sends again.
drawn = _array("drawn", np.int64)
#: States of links that lose in bursts.
link_states = _array("link_states", LINK)
#: Draws of acknowledgements by each sender.
acknowledged = _array("acknowledged", np.int64)
#: What owners have heard and owe.
owners = _array("owners", OWNER)
#: Of each message what a shared medium needs.
radios = _array("radios", RADIO)
#: Transmissions as they are received.
receptions = _array("receptions", RECEPTION)
#: What is on the air at each place.
air = _array("air", PLACE)
#: Senders on a shared medium; the learner is last.
senders = _array("senders", SENDER)
_keys = _array("keys", np.uint64)
_running = _array("running", np.float64)
#: Begins and ends of spans in which nothing gets through, by turns.
blackouts = _array("blackouts", np.float64)


@njit(forceinline=True)
def key(m, purpose):  # type: ignore[no-untyped-def]
    """Key of the stream of a purpose (`state.PURPOSES`)."""
    keys = _keys(m)
    return keys[2 * purpose], keys[2 * purpose + 1]


@njit(forceinline=True)
def running(m):  # type: ignore[no-untyped-def]
    """Sums of weights of links (`clocks.running_weights`); empty where all weigh alike."""
    return _running(m)[: m.state.links * m.state.by_weight]
