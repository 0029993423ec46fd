"""The running network of one simulation on SimPy, and the loop that advances its time.

The world holds the time, the agents and their clocks, the channel, and the record of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop
from typing import TYPE_CHECKING

import numpy as np
import simpy

from p2psim.core import events as ev
from p2psim.core.randomness import Streams
from p2psim.core.times import until
from p2psim.network.channels.draws import Drawing
from p2psim.network.clock_heap import ticks
from p2psim.network.members import Members
from p2psim.network.simpy_engine.log import EventLog
from p2psim.network.simpy_engine.presence import Presence
from p2psim.network.simpy_engine.timers import LAST, NORMAL, Action, ClockEvents, Ended, Message, moment

if TYPE_CHECKING:
    from p2psim.network.section import Network


def _write_nothing(*_: float) -> int:
    """Stand for what the log writes once the run is over."""
    return ev.NONE


class World:
    """The running network that exchanges, channels and availability see (`RunningNetwork`).

    Parameters
    ----------
    network : Network
    rates : ndarray, shape (n,)
        Wakes of each agent per unit of time.
    streams : Streams
        Random streams of this replica.
    limits : ndarray of int64, shape (n,), optional
        The most releases that each agent may make.
    commits, time : optional
        Where the run ends: after so many commits, or after what happens at this time.
    chunk : int
        Events in a chunk.
    """

    def __init__(
        self,
        network: Network,
        rates: np.ndarray,
        streams: Streams,
        limits: np.ndarray | None,
        commits: int | None,
        time: float | None,
        chunk: int,
    ):
        self.env = simpy.Environment()
        self.links = network.links
        self.goes_on = network.goes_on
        self.updates = network.updates
        self.rates = rates
        self.streams = streams
        self.log = EventLog(chunk)
        self.members = network.members or Members.unnamed(self.links.agents)
        self.presence = Presence(self, network.availability)
        self.present = self.presence.present
        self.draws = Drawing(streams).draws
        self.versions = [0] * self.links.agents
        self.releases = [0] * self.links.agents
        self.commits = 0
        self.ended = ""
        self._limits = limits.tolist() if limits is not None else None
        # Agents that can still do something, and whether each of them can.
        self._active = self.links.agents
        self._is_active = bytearray(b"\x01") * self.links.agents
        self._answers_in_flight = 0
        self._last_commit = commits
        self._write: Callable[..., int] = self.log.write
        self._write_update: Callable[..., int] = self.log.write_update
        self._write_delivery: Callable[..., int] = self.log.write_delivery
        self.fresh = network.channel.fresh
        self._is_ideal = network.channel.ideal and not network.channel.resending.retries
        self._carry = network.channel.open(self, network.vectors).carry
        self._end_time = np.inf if time is None else float(time)
        if time is not None:
            self.env.schedule(Action(lambda: self.end("time")), LAST, time)
        network.availability.start(self, streams)
        self._misses = network.availability.misses(self, streams)

    def __repr__(self) -> str:
        return f"<World of {self.links.agents} agents at t = {self.env.now:g}, {self.commits} commits>"

    # What happens, and is written down

    def wake(self, agent: int, outcome: int = ev.OK) -> int:
        """Write that an agent's clock ticked."""
        return self._write(self.env._now, ev.WAKE, agent, ev.NOBODY, ev.NONE, ev.NONE, ev.NONE, outcome)

    def commit(self, agent: int, peer: int, cause: int, release: int) -> int:
        """Write an update of a model (of the learner: agent −1), and end the run if it was the last."""
        self.commits += 1
        if agent == ev.LEARNER:
            version = self.commits
        else:
            version = self.versions[agent] = self.versions[agent] + 1
        seq = self._write(self.env._now, ev.COMMIT, agent, peer, version, cause, release, ev.OK)
        if self.commits == self._last_commit:
            self.end("commits")
        return seq

    def leave(self, agent: int) -> None:
        """Write that an agent, or the learner, leaves."""
        self._write(self.env._now, ev.LEAVE, agent, ev.NOBODY, ev.NONE, ev.NONE, ev.NONE, ev.OK)

    def join(self, agent: int, peer: int, version: int) -> None:
        """Write that an agent comes back, and the model that it fetches from a peer."""
        self._write(self.env._now, ev.JOIN, agent, peer, version, ev.NONE, ev.NONE, ev.OK)

    def drop(self, agent: int, peer: int, version: int, cause: int, outcome: int) -> int:
        """Write that something an agent was to do will not be done."""
        return self._write(self.env._now, ev.DROP, agent, peer, version, cause, ev.NONE, outcome)

    def release(self, agent: int) -> int:
        """Number of the release that an agent makes now, touching its data; `NONE` if it may make no more."""
        if self.goes_on and self.is_spent(agent):
            return ev.NONE
        number = self.releases[agent]
        self.releases[agent] = number + 1
        if self._limits is not None and number + 1 == self._limits[agent] and not self.goes_on:
            self.deactivate(agent)
        return number

    def is_spent(self, agent: int) -> bool:
        """Whether an agent may make no more releases."""
        return self._limits is not None and self.releases[agent] >= self._limits[agent]

    def send(
        self,
        sender: int,
        receivers: Sequence[int],
        version: int,
        cause: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ) -> int:
        """Send one message to one or all neighbours; it ends at each receiver in ``heard`` or ``lost``."""
        peer = receivers[0] if len(receivers) == 1 else ev.NEIGHBOURS
        seq = self._write(self.env._now, ev.SEND, sender, peer, version, cause, release, ev.OK)
        if release != ev.NONE:
            self._answers_in_flight += len(receivers)
        self._start(sender, receivers, seq, version, release, heard, lost)
        return seq

    def _start(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ) -> None:
        """Hand a message to the medium; what arrives at once is delivered without one."""
        if not self._is_ideal:
            self._carry(Message(sender, receivers, seq, version, release, heard, lost))
            return
        for receiver in receivers:
            if self.present[receiver]:
                self._deliver(sender, receiver, seq, version, release, heard)
            else:
                self.arrive(Message(sender, receivers, seq, version, release, heard, lost), receiver)

    def update_and_send(
        self, agent: int, receivers_of: Sequence[Iterator[Sequence[int]]], ended: Ended
    ) -> None:
        """Let an agent wake, update its model and send it: `wake`, `release`, `commit` and `send` in one step.

        Parameters
        ----------
        agent : int
        receivers_of : sequence of iterators
            For each agent, the receivers of its next message, again and again; asked only if there is a send.
        ended : callable
            Called at the end of the message at each receiver, heard or lost.
        """
        releases = self.releases
        if self._limits is None and self.commits + 1 != self._last_commit:
            release = releases[agent]
            releases[agent] = release + 1
        elif self.is_spent(agent) and not self.goes_on:
            self.wake(agent, ev.SPENT)
            return
        elif self.commits + 1 == self._last_commit:
            # The run ends before the send.
            self.commit(agent, ev.NOBODY, self.wake(agent), self.release(agent))
            return
        else:
            release = self.release(agent)
        receivers = next(receivers_of[agent])
        self.commits += 1
        version = self.versions[agent] = self.versions[agent] + 1
        peer = receivers[0] if len(receivers) == 1 else ev.NEIGHBOURS
        seq = self._write_update(self.env._now, agent, peer, version, release)
        if release != ev.NONE:
            self._answers_in_flight += len(receivers)
        self._start(agent, receivers, seq, version, release, ended, ended)

    # What the channel tells

    def retry(self, message: Message, receiver: int, outcome: int) -> None:
        """Write that a message is sent again to one receiver, and why."""
        version, seq, release = message.version, message.seq, message.release
        self._write(self.env._now, ev.RETRY, message.sender, receiver, version, seq, release, outcome)

    def arrive(self, message: Message, receiver: int) -> None:
        """Deliver a message, hold it, or drop it if the receiver is offline."""
        if not self.present[receiver]:
            if self.presence.takes_in(receiver):
                self.presence.hold(message, receiver)
            else:
                self.fail(message, receiver, ev.OFFLINE)
            return
        self._deliver(message.sender, receiver, message.seq, message.version, message.release, message.heard)

    def _deliver(
        self, sender: int, receiver: int, seq: int, version: int, release: int, heard: Ended
    ) -> None:
        delivery = self._write_delivery(self.env._now, receiver, sender, version, seq, release)
        heard(sender, receiver, delivery, version, release)
        if release != ev.NONE:
            # As in `may_end`, without the call.
            self._answers_in_flight -= 1
            if not self._active:
                self.settle()

    def fail(self, message: Message, receiver: int, outcome: int) -> None:
        """Drop a message on its way to one receiver."""
        sender, version, release = message.sender, message.version, message.release
        drop = self._write(self.env._now, ev.DROP, receiver, sender, version, message.seq, release, outcome)
        message.lost(sender, receiver, drop, version, release)
        if release != ev.NONE:
            self.may_end()

    def keep_going(self) -> None:
        """Let the run not end for want of releases before `may_end` has been called as often."""
        self._answers_in_flight += 1

    def may_end(self) -> None:
        """Take back one `keep_going`."""
        # Only messages that carry a release count: queries would keep a poll going for ever.
        self._answers_in_flight -= 1
        if not self._active:
            self.settle()

    def settle(self) -> None:
        """End the run if nobody may make a release any more, and none is on its way."""
        if not self._active and not self._answers_in_flight:
            self.end("exhausted")

    def deactivate(self, agent: int) -> None:
        """Take note that an agent makes no release any more."""
        if self._is_active[agent]:
            self._is_active[agent] = 0
            self._active -= 1

    def misses(self, agent: int) -> bool:
        """Whether an agent misses the wake that comes now; to be asked once for each."""
        return self._misses is not None and self._misses[agent]()

    # Randomness and time

    def start_clocks(self, tick: Callable[[int], None]) -> None:
        """Start every agent's clock; ``tick`` is called with the agent at each tick that it does not miss."""
        ClockEvents(self.env, ticks(self.streams.key("clocks"), self.rates), self.present, self._misses, tick)

    def after(self, delay: float, act: Callable[[], None]) -> None:
        """Call ``act`` after a delay; at once, and before anything else, if the delay is zero."""
        if delay == 0:
            act()
        else:
            self.env.schedule(Action(act), NORMAL, delay)

    def until(self, time: float) -> simpy.Event:
        """Event of a time that is now or to come, such as a multiple of an interval; see `p2psim.core.times`."""
        return moment(self.env, until(time, self._end_time))

    def end(self, reason: str) -> None:
        """End the run: nothing is written from here on."""
        if not self.ended:
            self.ended = reason
            self._write = self._write_update = self._write_delivery = _write_nothing

    def run(self) -> Iterator[np.ndarray]:
        """Let time pass until the run is over; yields chunks of events."""
        return let_time_pass(self)


def let_time_pass(world: World) -> Iterator[np.ndarray]:
    """Let one event after the other happen until the run is over; yields chunks of events."""
    # Environment.step of SimPy, written out: for short events its calls cost as much as what they call.
    env, log, full = world.env, world.log, world.log.full
    queue = env._queue
    while not world.ended:
        if not queue:
            world.end("exhausted")
            break
        env._now, _, _, event = heappop(queue)
        try:
            callback = event.callback  # type: ignore[attr-defined]
        except AttributeError:
            _call_back(event)
        else:
            callback(event)
        if full:
            yield log.take()
    while full:
        yield log.take()
    rest = log.rest()
    if rest.size:
        yield rest


def _call_back(event: simpy.Event) -> None:
    """Do what SimPy does with an event whose time has come."""
    callbacks = event.callbacks
    event.callbacks = None  # type: ignore[assignment]
    for callback in callbacks:
        callback(event)
    if not event._ok and not event.defused:
        raise event._value
