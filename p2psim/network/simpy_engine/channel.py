"""The channel: a message on its way is a process, which travels, is lost or arrives, and may be sent again.

Where senders share a medium, each sender's radio is a process, which sends one message after the other. Transmissions
take time, and collide where several are heard (`Interference`). A radio begins at the next slot, or when it hears
nobody; in pure ALOHA (Abramson 1970) it begins when it has something to send.
"""

import math
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import simpy

from p2psim.core.distributions import Distribution
from p2psim.core.events import BUSY, COLLISION, GAVE_UP, LEARNER, LOSS, NONE, OFFLINE, OK, UNACKNOWLEDGED
from p2psim.core.times import ROUNDING
from p2psim.network.channels.channel import BACKOFF_AIRTIMES
from p2psim.network.channels.channel import Channel as ChannelOptions
from p2psim.network.channels.draws import Airtime, Draws, open_latency
from p2psim.network.channels.effects import ActiveEffects, Delivery
from p2psim.network.order import AIRTIME, ARRIVAL, CHANNEL, REGULAR, RESENDING, SENSING, SLOT
from p2psim.network.simpy_engine.base import Message, Run, Transmission, begin, exactly
from p2psim.network.spec import Steps

#: Transmission, receiver, when it began and when it arrives, whether it is lost: times by which it is late, and whether
#: it is lost then.
Affect = Callable[[Transmission, int, float, float, bool], tuple[Sequence[float], bool]]

#: Lets a transmission travel to a receiver for some times, and end there with an outcome.
PassOn = Callable[[Transmission, int, Sequence[float], int], None]


class Reception:
    """A transmission as it is received at one place.

    Attributes
    ----------
    sender : int
    start, end : float
    before, others : set of int
        Other senders that were on the air when it began, and in all.
    """

    __slots__ = ("before", "end", "others", "sender", "start")

    def __init__(self, sender: int, start: float, end: float, before: set[int]):
        self.sender, self.start, self.end = sender, start, end
        self.before, self.others = before, set(before)


class Place:
    """What is on the air at one place; transmissions of one sender do not disturb one another."""

    def __init__(self) -> None:
        self._on_air: list[Reception] = []

    def begin(self, sender: int, start: float, end: float) -> Reception:
        """Put a transmission on the air in [start, end); starts must not go back."""
        self._on_air = [other for other in self._on_air if other.end > start]
        rivals = [other for other in self._on_air if other.sender != sender]
        for rival in rivals:
            rival.others.add(sender)
        reception = Reception(sender, start, end, {rival.sender for rival in rivals})
        self._on_air.append(reception)
        return reception

    def is_busy(self, listener: int, now: float) -> bool:
        """Whether someone else than the listener is on the air."""
        return any(other.end > now and other.sender != listener for other in self._on_air)


class Interference:
    """All transmissions of a run.

    A transmission is heard in full at a receiver unless

    - another one that is in earshot of the receiver overlaps it; the sender's own do not count, and the receiver's own
      only with ``half_duplex``;
    - and it is not captured: one that began while nobody else was on the air there survives later ones, all together,
      with the probability ``capture``. Who is sending itself captures nothing.

    Parameters
    ----------
    run : Run
    options : ChannelOptions
    longest : float
        Length of the longest transmission, in the unit of the spans that it compares.
    """

    def __init__(self, run: Run, options: ChannelOptions, longest: float):
        links = run.links
        self._run, self._links, self._longest = run, links, longest
        shared = links.star if options.shared is None else options.shared
        self._everywhere = Place() if shared else None
        self._places = (
            {} if shared else {place: Place() for place in range(-1 if links.star else 0, links.agents)}
        )
        self._half_duplex = options.half_duplex
        # What each has sent itself, as long as something that it overlaps can be on the air.
        self._own: dict[int, list[tuple[float, float]]] = {}
        self._capture, self._luck = options.capture, Draws(run, "capture")

    def begin(
        self, sender: int, receivers: Sequence[int], start: float, end: float
    ) -> Mapping[int, Reception]:
        """Put a transmission on the air in [start, end), now; returns how each receiver gets it."""
        if self._half_duplex:
            recent = [span for span in self._own.get(sender, ()) if span[1] > start - self._longest]
            self._own[sender] = [*recent, (start, end)]
        if self._everywhere is not None:
            return dict.fromkeys(receivers, self._everywhere.begin(sender, start, end))
        return {
            place: self._places[place].begin(sender, start, end) for place in self._earshot(sender, receivers)
        }

    def _earshot(self, sender: int, receivers: Sequence[int]) -> Sequence[int]:
        """Places where a transmission that begins now is heard; a link to a receiver may have gone since the send."""
        if sender == LEARNER:
            return range(self._links.agents)
        near = self._run.neighbours(sender)
        return near if self._links.changes is None else sorted({*near, *receivers})

    def is_busy(self, listener: int, now: float) -> bool:
        """Whether a sender hears another one at its own place."""
        place = self._everywhere if self._everywhere is not None else self._places[listener]
        return place.is_busy(listener, now)

    def hears(self, receiver: int, reception: Reception) -> bool:
        """Whether a receiver has heard a transmission, which ends now; to be asked once."""
        if self._half_duplex and self._was_sending(receiver, reception.start, reception.end):
            return False
        if not reception.others - {receiver}:
            return True
        if not self._capture or reception.before - {receiver}:
            return False
        return next(self._luck.of(reception.sender)) < self._capture

    def _was_sending(self, agent: int, start: float, end: float) -> bool:
        return any(begun < end and over > start for begun, over in self._own.get(agent, ()))


class SharedMedium:
    """Sends what senders hand over.

    Parameters
    ----------
    run : Run
    options : ChannelOptions
    longest : float
        Airtime of the longest transmission, and length of a slot.
    affect, pass_on : callable
        What effects do to a delivery, and what takes over at the end of the airtime: methods of `RunningChannel`.
    """

    def __init__(self, run: Run, options: ChannelOptions, longest: float, affect: Affect, pass_on: PassOn):
        self._run, self._env, self._slot = run, run.env, longest
        self._affect, self._pass_on = affect, pass_on
        self._collision, self._while_sending = options.collision, options.while_sending
        # Slotted transmissions are compared in slots, so that neighbouring ones touch without rounding.
        self._is_slotted = options.collision == "slotted"
        self._interference = Interference(run, options, 1.0 if self._is_slotted else longest)
        self._attempts = options.attempts
        backoff = options.backoff or Distribution(exponential=BACKOFF_AIRTIMES * longest)
        self._backoffs = Draws(run, "backoff", backoff)
        # What each sender has to send; the first is being sent.
        self._queues: dict[int, deque[Transmission]] = {}

    def send(self, sent: Transmission) -> None:
        """Send as soon as the sender's radio is free and the rules of access allow."""
        sender = sent.message.sender
        if self._while_sending == "overlap":
            begin(self._env, self._transmit(sent))
            return
        queue = self._queues.setdefault(sender, deque())
        if queue and self._while_sending == "skip":
            self._give_up(sent, BUSY)
            return
        queue.append(sent)
        if len(queue) == 1:
            begin(self._env, self._radio(queue))

    def _radio(self, queue: deque[Transmission]) -> Steps:
        """A sender's radio, as long as it has something to send."""
        while queue:
            yield from self._transmit(queue[0])
            queue.popleft()

    def _transmit(self, sent: Transmission) -> Steps:
        """A transmission: it waits for the medium, is on the air, and is heard at each receiver or not."""
        run, sender, first = self._run, sent.message.sender, sent.receivers[0]
        may_begin = yield from self._wait_for_access(sent)
        if not may_begin or not run.present[sender]:
            self._give_up(sent, OFFLINE if may_begin else GAVE_UP)
            return
        begun, (start, end) = self._env.now, self._span(sent.length)
        receptions = self._interference.begin(sender, sent.receivers, start, end)
        yield from exactly(self._env, end * self._slot if self._is_slotted else end)
        yield from run.turns.take(CHANNEL, sender, sent.message.seq, AIRTIME, first)
        for receiver, (latency, is_lost) in zip(sent.receivers, sent.paths, strict=True):
            late, is_lost = self._affect(sent, receiver, begun, self._env.now + latency, is_lost)
            if self._interference.hears(receiver, receptions[receiver]):
                self._pass_on(sent, receiver, (latency, *late), LOSS if is_lost else OK)
            else:
                self._pass_on(sent, receiver, (), COLLISION)

    def _give_up(self, sent: Transmission, outcome: int) -> None:
        for receiver in sent.receivers:
            self._pass_on(sent, receiver, (), outcome)

    def _wait_for_access(self, sent: Transmission) -> Generator[simpy.Event, Any, bool]:
        """Wait until a transmission may begin; whether it may at all."""
        env, sender, key = self._env, sent.message.sender, (sent.message.sender, sent.message.seq)
        if self._is_slotted:
            # Slotted ALOHA (Roberts 1975): transmissions begin at whole multiples of the slot.
            begins = self._next_slot() * self._slot
            if begins > env.now:
                yield from exactly(env, begins)
                yield from self._run.turns.take(REGULAR, *key, SLOT, sent.receivers[0])
        elif self._collision == "carrier-sense":
            # Non-persistent (Kleinrock, Tobagi 1975): who hears another waits a random time, and tries again.
            tries = 0
            while self._interference.is_busy(sender, env.now):
                tries += 1
                if tries == self._attempts:
                    return False
                backoff = next(self._backoffs.of(sender))
                if env.now + backoff > env.now:
                    yield from self._run.wait(backoff, *key, SENSING, sent.receivers[0])
        return True

    def _next_slot(self) -> int:
        """Number of the slot that begins now or next."""
        return math.ceil(self._env.now / self._slot * (1 - ROUNDING))

    def _span(self, length: float) -> tuple[float, float]:
        """From when to when a transmission is on the air that begins now, in slots where there are slots."""
        if self._is_slotted:
            return float(self._next_slot()), self._next_slot() + length / self._slot
        return self._env.now, self._env.now + length


class RunningChannel:
    """The channel of one run.

    Parameters
    ----------
    run : Run
    options : Channel
        As the scenario has it.
    airtime : Airtime
        Time that transmissions take.
    """

    def __init__(self, run: Run, options: ChannelOptions, airtime: Airtime):
        self._run = run
        self._airtime = airtime
        self._latency, self._is_lost = open_latency(options.latency, run), options.losses.open(run)
        self._effects = ActiveEffects(run, options.effects) if options.effects else None
        self._medium: SharedMedium | None = None
        if options.collision != "none" and self._airtime.loaded > 0:
            self._medium = SharedMedium(run, options, self._airtime.loaded, self.affect, self.pass_on)
        self._limit = options.resending.retries
        self._backoffs = Draws(run, "retransmit", options.retransmit.backoff)
        self._losing = options.retransmit.acknowledge
        self._acknowledgements = Draws(run, "acknowledgement")

    def carry(self, message: Message) -> None:
        """Take over a message, sent at this moment: it ends once at each of its receivers, now or later."""
        length = self._airtime.question if message.version == NONE else self._airtime.loaded
        self._transmit(Transmission(message, message.receivers, length))

    def _transmit(self, sent: Transmission) -> None:
        """Send on the shared medium, or to each receiver apart where messages do not disturb one another."""
        if self._needs_medium(sent):
            self._send_on_medium(sent)
        else:
            for receiver in sent.receivers:
                self.pass_on(sent, receiver, *self._way(sent, receiver))

    def _send_on_medium(self, sent: Transmission) -> None:
        assert self._medium is not None
        sent.paths = [self._path(sent, receiver) for receiver in sent.receivers]
        self._medium.send(sent)

    def _needs_medium(self, sent: Transmission) -> bool:
        """Whether a transmission is on a shared medium: what takes no airtime disturbs nobody."""
        return self._medium is not None and sent.length > 0

    def _path(self, sent: Transmission, receiver: int) -> tuple[float, bool]:
        """Latency of a transmission to a receiver, and whether it is lost on its way."""
        sender = sent.message.sender
        return self._latency(sender, receiver, sent.lane), self._is_lost(sender, receiver, sent.lane)

    def _way(self, sent: Transmission, receiver: int) -> tuple[Sequence[float], int]:
        """How long a transmission that begins now takes to a receiver, part by part, and how it ends there."""
        now, (latency, is_lost) = self._run.env.now, self._path(sent, receiver)
        late, is_lost = self.affect(sent, receiver, now, now + sent.length + latency, is_lost)
        return (sent.length, latency, *late), LOSS if is_lost else OK

    def affect(
        self, sent: Transmission, receiver: int, begin: float, end: float, is_lost: bool
    ) -> tuple[Sequence[float], bool]:
        """Times by which effects make a delivery late, and whether it is lost."""
        if self._effects is None:
            return (), is_lost
        delivery = Delivery(sent.message.sender, receiver, begin, end)
        return self._effects.on(delivery, sent.lane, is_lost)

    def pass_on(self, sent: Transmission, receiver: int, times: Sequence[float], outcome: int) -> None:
        """Let a transmission travel to a receiver for some times, and end there."""
        begin(self._run.env, self._deliver(sent, receiver, times, outcome))

    def _deliver(self, sent: Transmission, receiver: int, times: Sequence[float], outcome: int) -> Steps:
        """A message on its way to a receiver, until it has arrived, has failed for good, or needs the medium again."""
        run = self._run
        while True:
            for time in times:
                if time:
                    yield run.env.timeout(time)
            if any(times):
                yield from run.turns.take(CHANNEL, receiver, sent.message.seq, ARRIVAL)
            if outcome == OK:
                outcome = self._arrive(sent, receiver)
            again = None
            if outcome != OK:
                again = yield from self._send_again(sent, receiver, outcome)
            if again is None:
                return
            sent, (times, outcome) = again, self._way(again, receiver)

    def _arrive(self, sent: Transmission, receiver: int) -> int:
        """Hand a message over; returns the outcome as its sender sees it."""
        run, message = self._run, sent.message
        if self._limit and not run.presence.takes_in(receiver):
            return OFFLINE
        if not sent.arrived:
            run.arrive(message, receiver)
        is_silent = self._losing > 0 and next(self._acknowledgements.of(message.sender)) < self._losing
        return UNACKNOWLEDGED if is_silent else OK

    def _send_again(
        self, sent: Transmission, receiver: int, outcome: int
    ) -> Generator[simpy.Event, Any, Transmission | None]:
        """Send a message again after a backoff, or give up; returns what travels then, unless the medium has it."""
        run, message = self._run, sent.message
        arrived = sent.arrived or outcome == UNACKNOWLEDGED
        if sent.again < self._limit:
            backoff = next(self._backoffs.of(message.sender))
            yield from run.wait(backoff, message.sender, message.seq, RESENDING, receiver)
            if run.present[message.sender]:
                run.retry(message, receiver, outcome)
                again = Transmission(message, (receiver,), sent.length, sent.again + 1, arrived)
                if not self._needs_medium(again):
                    return again
                self._send_on_medium(again)
                return None
        if not arrived:
            run.fail(message, receiver, outcome)
        return None
