"""One run on SimPy: the network that exchanges, channel and availability see, its state, and the log of events."""

import struct
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import simpy

from p2psim.core import events as ev
from p2psim.core.errors import InputError
from p2psim.core.events import EVENT, EVENT_STRUCT
from p2psim.core.times import until
from p2psim.network.changes import ActiveLinks
from p2psim.network.channels.draws import Drawing
from p2psim.network.order import AT_END, LINKS, OTHER, REGULAR, WAIT
from p2psim.network.section import RunSetup
from p2psim.network.simpy_engine.agents import Computing, Presence, agent
from p2psim.network.simpy_engine.base import Message, Turns, begin, exactly
from p2psim.network.simpy_engine.channel import RunningChannel
from p2psim.network.spec import Computed, Ended, Steps

_PACK = struct.Struct(EVENT_STRUCT).pack_into
_SIZE = EVENT.itemsize


class EventLog:
    """Events in order of writing, handed out in chunks of a fixed size.

    Parameters
    ----------
    chunk : int
        Events in a chunk; only the last one may be smaller.

    Attributes
    ----------
    seq : int
        Number of the next event.
    full : list of ndarray
        Chunks that have not been taken.
    """

    def __init__(self, chunk: int):
        self._chunk = chunk
        self._bytes = bytearray(chunk * _SIZE)
        self._size = 0
        self.seq = 0
        self.full: list[np.ndarray] = []

    def __repr__(self) -> str:
        return f"<EventLog of {self.seq} events>"

    def write(
        self,
        time: float,
        kind: int,
        agent: int,
        peer: int,
        version: int,
        cause: int,
        release: int,
        outcome: int,
    ) -> int:
        """Append one event and return its sequence number."""
        seq = self.seq
        offset = self._size * _SIZE
        _PACK(self._bytes, offset, seq, time, version, cause, agent, peer, release, kind, outcome)
        self.seq = seq + 1
        self._size += 1
        if self._size == self._chunk:
            self.full.append(self.rest())
        return seq

    def take(self) -> Iterator[np.ndarray]:
        """Remove and return full chunks, the oldest first."""
        while self.full:
            yield self.full.pop(0)

    def rest(self) -> np.ndarray:
        """Remove and return what does not fill a chunk, possibly nothing."""
        events = np.frombuffer(self._bytes, EVENT, self._size)
        self._bytes, self._size = bytearray(self._chunk * _SIZE), 0
        return events


class SimPyRun:
    """A network while it runs, as `RunningNetwork` describes it."""

    def __init__(self, setup: RunSetup):
        network, self.rates, self.streams, limits, commits, time, chunk = setup
        self.env = simpy.Environment()
        self.turns = Turns(self.env)
        self.links, self.goes_on, self.updates = network.links, network.goes_on, network.updates
        self.answerer_releases = network.answerer_releases
        self.draws = Drawing(self.streams).draws
        self.members = network.known_members
        self.log = EventLog(chunk)
        self.versions = [0] * self.links.agents
        self.releases = [0] * self.links.agents
        self.commits = 0
        self.ended = ""
        self.fresh = network.channel.fresh
        self._limits = limits.tolist() if limits is not None else None
        # Agents that may still make a release, and releases on their way: without either the run ends.
        self._active = set(range(self.links.agents))
        self._under_way = 0
        self._last_commit = commits
        self._last_time = np.inf if time is None else float(time)
        # Who is linked with whom now, and the lists of neighbours that were asked for since links changed.
        self._near = ActiveLinks(self.links, self._last_time)
        self._neighbours: dict[int, list[int]] = {}
        # Triggered when a chunk is full, or the run over.
        self._pause = self.env.event()
        self.presence = Presence(self, network.availability)
        self.present = self.presence.present
        self._computing = Computing(self, network)
        self._channel = RunningChannel(self, network.channel, network.airtime)
        if self.links.changes is not None:
            self.env.process(self._change_links())
        self.env.process(self._end_in_time())
        network.availability.start(self, self.streams)
        self._misses = network.availability.misses(self, self.streams)
        network.exchange.start(self)

    def __repr__(self) -> str:
        return f"<SimPyRun of {self.links.agents} agents at t = {self.env.now:g}, {self.commits} commits>"

    def run(self) -> Iterator[np.ndarray]:
        """Let time pass until the run is over; yields chunks of events."""
        while not self.ended:
            if not self.log.full:
                self._pause = self.env.event()
                try:
                    self.env.run(until=self._pause)
                except Exception as error:
                    # SimPy raises a copy of what a process raised.
                    raise error.__cause__ or error from None
            yield from self.log.take()
        rest = self.log.rest()
        if rest.size:
            yield rest

    # Time, and the end of it

    def start_clocks(self, act: Callable[[int], None]) -> None:
        """Start every agent; ``act`` is called with the agent at each tick of its clock that it does not miss."""
        for number in range(self.links.agents):
            self.env.process(agent(self, number, act))

    def begin(self, steps: Steps) -> None:
        """Start a process at once; what it does before its first wait is done in this call."""
        begin(self.env, steps)

    def wait(self, delay: float, agent: int, number: int = 0, kind: int = OTHER, peer: int = 0) -> Steps:
        """Let a time pass, and then wait for one's turn; no wait at all if it is 0."""
        if not delay >= 0:
            raise InputError(f"a wait must be a time of 0 or more, got {delay}")
        if delay:
            yield self.env.timeout(delay)
            yield from self.turns.take(WAIT, agent, number, kind, peer)

    def until(self, time: float, agent: int, number: int = 0, kind: int = OTHER) -> Steps:
        """Wait until a time that is now or to come, exactly, and then for one's turn."""
        yield from exactly(self.env, self.not_beyond_end(time))
        yield from self.turns.take(REGULAR, agent, number, kind)

    def not_beyond_end(self, time: float) -> float:
        """A moment at a regular time, or the end of the run where rounding alone puts it beyond."""
        return until(time, self._last_time)

    def _change_links(self) -> Steps:
        """Links come and go, before anything else happens at their instant."""
        while (time := self._near.upcoming) < np.inf:
            yield from exactly(self.env, time)
            yield from self.turns.take(LINKS)
            self._near.advance(time)
            self._neighbours.clear()

    def neighbours(self, agent: int) -> Sequence[int]:
        """Neighbours of an agent at this moment, in rising order; not to be changed."""
        found = self._neighbours.get(agent)
        if found is None:
            found = self._neighbours[agent] = self._near.of(agent).tolist()
        return found

    def linked(self, agent: int, peer: int) -> bool:
        """Whether two agents that some time are linked are so at this moment."""
        return self.links.changes is None or self._near.linked(agent, peer)

    def _end_in_time(self) -> Steps:
        """The end of a run by its time; without that, when nothing is left to happen."""
        yield self.env.timeout(self._last_time)
        yield from self.turns.take(*AT_END)
        self._end("time" if self._last_time < np.inf else "exhausted")

    def _end(self, reason: str) -> None:
        """End the run: nothing is written from here on."""
        if not self.ended:
            self.ended = reason
            self._stop()

    def _stop(self) -> None:
        if not self._pause.triggered:
            self._pause.succeed()

    def keep_going(self) -> None:
        """Let the run not end for want of releases before `may_end` has been called as often."""
        self._under_way += 1

    def may_end(self) -> None:
        """Take back one `keep_going`."""
        self._under_way -= 1
        self.settle()

    def settle(self) -> None:
        """End the run if no agent may make a release any more, and none is on its way."""
        if not self._active and not self._under_way:
            self._end("exhausted")

    def deactivate(self, agent: int) -> None:
        """Take note that an agent makes no release any more."""
        self._active.discard(agent)

    # What happens, and is written down

    def write(
        self, kind: int, agent: int, peer: int, version: int, cause: int, release: int, outcome: int
    ) -> int:
        """Write an event of this moment, unless the run is over; returns its number."""
        if self.ended:
            return ev.NONE
        seq = self.log.write(self.env.now, kind, agent, peer, version, cause, release, outcome)
        if self.log.full:
            self._stop()
        return seq

    def wake(self, agent: int, outcome: int = ev.OK) -> int:
        """Write that an agent's clock ticked."""
        return self.write(ev.WAKE, agent, ev.NOBODY, ev.NONE, ev.NONE, ev.NONE, outcome)

    def misses(self, agent: int) -> bool:
        """Whether an agent misses the wake that comes now; to be asked once for each."""
        return self._misses is not None and self._misses[agent]()

    def is_spent(self, agent: int) -> bool:
        """Whether an agent may make no more releases."""
        return self._limits is not None and self.releases[agent] >= self._limits[agent]

    def release(self, agent: int) -> int:
        """Number of the release that an agent makes now, touching its data; `NONE` if it may make no more."""
        if self.goes_on and self.is_spent(agent):
            return ev.NONE
        number = self.releases[agent]
        self.releases[agent] = number + 1
        if self.is_spent(agent) and not self.goes_on:
            self.deactivate(agent)
        return number

    def commit(self, agent: int, peer: int, cause: int, release: int) -> int:
        """Write an update of a model (of the learner: agent −1), and end the run if it was the last."""
        self.commits += 1
        version = self.commits
        if agent != ev.LEARNER:
            version = self.versions[agent] = self.versions[agent] + 1
        seq = self.write(ev.COMMIT, agent, peer, version, cause, release, ev.OK)
        if self.commits == self._last_commit:
            self._end("commits")
        return seq

    def update_and_send(
        self, agent: int, receivers_of: Sequence[Iterator[Sequence[int]]], ended: Ended
    ) -> None:
        """Let an agent wake, compute, update its model and send it; receivers are asked for only if there is a send."""

        def update(cause: int) -> None:
            release = self.release(agent)
            commit = self.commit(agent, ev.NOBODY, cause, release)
            if not self.ended and self.neighbours(agent):
                receivers = next(receivers_of[agent])
                self.send(agent, receivers, self.versions[agent], commit, release, ended, ended)

        if self.is_spent(agent) and not self.goes_on:
            self.wake(agent, ev.SPENT)
        elif self.is_computing(agent):
            self.wake(agent, ev.BUSY)
        elif not self.neighbours(agent):
            self.wake(agent, ev.ALONE)
        else:
            self.work(agent, self.versions[agent], self.wake(agent), update, lambda _: None)

    def drop(self, agent: int, peer: int, version: int, cause: int, outcome: int) -> int:
        """Write that something an agent was to do will not be done."""
        return self.write(ev.DROP, agent, peer, version, cause, ev.NONE, outcome)

    def work(self, agent: int, version: int, cause: int, done: Computed, cancelled: Computed) -> None:
        """Let an agent compute, which takes the time of ``network.compute``."""
        self._computing.work(agent, version, cause, done, cancelled)

    def is_computing(self, agent: int) -> bool:
        """Whether an agent computes, or will go on to when it returns."""
        return self._computing.is_computing(agent)

    def stop_work(self, agent: int) -> int:
        """Let an agent that computes stop; returns the number of the beginning."""
        return self._computing.stop(agent)

    # Messages

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
        """Send one message to one or all neighbours; it ends at each receiver in ``heard`` or ``lost``, once."""
        peer = receivers[0] if len(receivers) == 1 else ev.NEIGHBOURS
        seq = self.write(ev.SEND, sender, peer, version, cause, release, ev.OK)
        if release != ev.NONE:
            # Only messages that carry a release count: queries would keep a poll going for ever.
            self._under_way += len(receivers)
        self._channel.carry(Message(sender, receivers, seq, version, release, heard, lost))
        return seq

    def retry(self, message: Message, receiver: int, outcome: int) -> None:
        """Write that a message is sent again to one receiver, and why."""
        self.write(ev.RETRY, message.sender, receiver, message.version, message.seq, message.release, outcome)

    def arrive(self, message: Message, receiver: int) -> None:
        """Deliver a message, hold it, or drop it if the receiver is offline."""
        if self.present[receiver]:
            self._finish(message, receiver, ev.DELIVER, ev.OK, message.heard)
        elif self.presence.takes_in(receiver):
            self.presence.hold(message, receiver)
        else:
            self.fail(message, receiver, ev.OFFLINE)

    def fail(self, message: Message, receiver: int, outcome: int) -> None:
        """Drop a message on its way to one receiver."""
        self._finish(message, receiver, ev.DROP, outcome, message.lost)

    def _finish(self, message: Message, receiver: int, kind: int, outcome: int, then: Ended) -> None:
        """Write how a message has ended at a receiver, and let follow what follows from that."""
        sender, version, release = message.sender, message.version, message.release
        seq = self.write(kind, receiver, sender, version, message.seq, release, outcome)
        then(sender, receiver, seq, version, release)
        if release != ev.NONE:
            self.may_end()
