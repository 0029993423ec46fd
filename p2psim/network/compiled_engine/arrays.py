"""The arrays of a run, by their addresses in its state: a kernel's functions hand on one state, and not forty arrays.

A run keeps its arrays alive, and writes their addresses anew when one is replaced by a larger one (`run`).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types

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
    TASK,
    TURN,
)

#: Shape of a view: who reads it knows how many elements there are.
_MANY = 1 << 40


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:
    """A pointer of an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@njit(forceinline=True)
def view(address, dtype):  # type: ignore[no-untyped-def]
    """The array at an address."""
    return numba.carray(_pointer(address), (_MANY,), dtype)


@njit(forceinline=True)
def key(m, purpose):  # type: ignore[no-untyped-def]
    """Key of the stream of a purpose (`state.PURPOSES`)."""
    keys = view(m.state.at_keys, np.uint64)
    return keys[2 * purpose], keys[2 * purpose + 1]


@njit(forceinline=True)
def running(m):  # type: ignore[no-untyped-def]
    """Sums of weights of links (`clocks.running_weights`); empty where all weigh alike."""
    s = m.state
    return view(s.at_running, np.float64)[: s.links * s.by_weight]


@njit(forceinline=True)
def out(m):  # type: ignore[no-untyped-def]
    """The array of events."""
    return view(m.state.at_out, EVENT)


@njit(forceinline=True)
def agents(m):  # type: ignore[no-untyped-def]
    """Agents, and the learner last."""
    return view(m.state.at_agents, AGENT)


@njit(forceinline=True)
def present(m):  # type: ignore[no-untyped-def]
    """1 where an agent is online; the learner is last."""
    return view(m.state.at_present, np.uint8)


@njit(forceinline=True)
def is_able(m):  # type: ignore[no-untyped-def]
    """1 where an agent can still make a release."""
    return view(m.state.at_is_able, np.uint8)


@njit(forceinline=True)
def due(m):  # type: ignore[no-untyped-def]
    """Times of appointments, a heap."""
    return view(m.state.at_due, np.float64)


@njit(forceinline=True)
def due_messages(m):  # type: ignore[no-untyped-def]
    """Their messages."""
    return view(m.state.at_due_messages, np.int64)


@njit(forceinline=True)
def messages(m):  # type: ignore[no-untyped-def]
    """Messages in flight and timers."""
    return view(m.state.at_messages, MESSAGE)


@njit(forceinline=True)
def tasks(m):  # type: ignore[no-untyped-def]
    """Tasks, a stack."""
    return view(m.state.at_tasks, TASK)


@njit(forceinline=True)
def nodes(m):  # type: ignore[no-untyped-def]
    """Elements of lists."""
    return view(m.state.at_nodes, NODE)


@njit(forceinline=True)
def indptr(m):  # type: ignore[no-untyped-def]
    """Where each agent's links begin."""
    return view(m.state.at_indptr, np.int64)


@njit(forceinline=True)
def indices(m):  # type: ignore[no-untyped-def]
    """Other ends of links."""
    return view(m.state.at_indices, np.int32)


@njit(forceinline=True)
def laws(m):  # type: ignore[no-untyped-def]
    """Laws of random quantities."""
    return view(m.state.at_laws, LAW)


@njit(forceinline=True)
def places(m):  # type: ignore[no-untyped-def]
    """Draws made of each law by each agent."""
    return view(m.state.at_places, np.int64)


@njit(forceinline=True)
def cursors(m):  # type: ignore[no-untyped-def]
    """Where draws of an agent are in the table."""
    return view(m.state.at_cursors, CURSOR)


@njit(forceinline=True)
def table(m):  # type: ignore[no-untyped-def]
    """Draws that NumPy made."""
    return view(m.state.at_table, np.float64)


@njit(forceinline=True)
def clock_times(m):  # type: ignore[no-untyped-def]
    """Times of the agents' next wakes, a heap."""
    return view(m.state.at_clock_times, np.float64)


@njit(forceinline=True)
def clock_agents(m):  # type: ignore[no-untyped-def]
    """Their agents."""
    return view(m.state.at_clock_agents, np.int32)


@njit(forceinline=True)
def missed_keys(m):  # type: ignore[no-untyped-def]
    """Keys of the reasons for missed wakes, two words each."""
    return view(m.state.at_missed_keys, np.uint64)


@njit(forceinline=True)
def miss_chances(m):  # type: ignore[no-untyped-def]
    """Of each reason, each agent's chance to miss a wake."""
    return view(m.state.at_miss_chances, np.float64)


@njit(forceinline=True)
def turns(m):  # type: ignore[no-untyped-def]
    """Turns of presence, in order."""
    return view(m.state.at_turns, TURN)


@njit(forceinline=True)
def group_starts(m):  # type: ignore[no-untyped-def]
    """Where each group begins in `group_agents`."""
    return view(m.state.at_group_starts, np.int64)


@njit(forceinline=True)
def group_agents(m):  # type: ignore[no-untyped-def]
    """Agents of the groups that turn."""
    return view(m.state.at_group_agents, np.int64)


@njit(forceinline=True)
def absences(m):  # type: ignore[no-untyped-def]
    """Why agents are offline; the learner is last."""
    return view(m.state.at_absences, ABSENCE)


@njit(forceinline=True)
def travel_times(m):  # type: ignore[no-untyped-def]
    """Latency of each link."""
    return view(m.state.at_travel_times, np.float64)


@njit(forceinline=True)
def chances(m):  # type: ignore[no-untyped-def]
    """Chance that a delivery is lost, of all links or of each."""
    return view(m.state.at_chances, np.float64)


@njit(forceinline=True)
def drawn(m):  # type: ignore[no-untyped-def]
    """Draws of losses by each sender for what it sends again."""
    return view(m.state.at_drawn, np.int64)


@njit(forceinline=True)
def link_states(m):  # type: ignore[no-untyped-def]
    """States of links that lose in bursts."""
    return view(m.state.at_link_states, LINK)


@njit(forceinline=True)
def acknowledged(m):  # type: ignore[no-untyped-def]
    """Draws of acknowledgements by each sender."""
    return view(m.state.at_acknowledged, np.int64)


@njit(forceinline=True)
def owners(m):  # type: ignore[no-untyped-def]
    """What owners have heard and owe."""
    return view(m.state.at_owners, OWNER)


@njit(forceinline=True)
def radios(m):  # type: ignore[no-untyped-def]
    """Of each message what a shared medium needs."""
    return view(m.state.at_radios, RADIO)


@njit(forceinline=True)
def receptions(m):  # type: ignore[no-untyped-def]
    """Transmissions as they are received."""
    return view(m.state.at_receptions, RECEPTION)


@njit(forceinline=True)
def air(m):  # type: ignore[no-untyped-def]
    """What is on the air at each place."""
    return view(m.state.at_air, PLACE)


@njit(forceinline=True)
def senders(m):  # type: ignore[no-untyped-def]
    """Senders on a shared medium; the learner is last."""
    return view(m.state.at_senders, SENDER)
