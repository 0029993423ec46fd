"""A medium in which transmissions take time and collide at each receiver that hears several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import simpy

from p2psim.network.channels.access import Access
from p2psim.network.channels.air import Air
from p2psim.network.channels.ears import Reception
from p2psim.network.channels.latency import Delays
from p2psim.network.channels.loss import Losses
from p2psim.network.channels.medium import Ends
from p2psim.network.channels.quiet import QuietMedium
from p2psim.network.channels.timing import Airtime
from p2psim.network.events import BUSY, COLLISION, LOSS, NONE, OFFLINE
from p2psim.network.timers import NORMAL

if TYPE_CHECKING:
    from p2psim.network.world import Ended, World

_AT_ONCE = (0.0, False)


class Transmission(simpy.Event):
    """A message on the air, which is also the event of its end.

    Attributes
    ----------
    sender : int
    receivers : sequence of int
    message : tuple
        (seq, version, release, heard, lost), as `Medium.carry` got them.
    length : float
        Airtime.
    fates : list of (float, bool), optional
        For each receiver: how long the message travels after its airtime, and whether it is lost on its way. None where
        it arrives everywhere at the end of its airtime.
    tries : int
        How often the sender has found the medium busy.
    start, end : float
        When it is on the air, once it is.
    before, others : tuple of int
        As in `Reception`, where everybody hears the same.
    at_places : mapping from receiver to Reception, optional
        How it is received at each place, where that differs.
    """

    # What most transmissions leave as it is stands here: a message is made faster so.
    _ok = True
    _value = None
    tries = 0
    start = end = 0.0
    before: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    at_places: dict[int, Reception] | None = None

    def __init__(
        self,
        env: simpy.Environment,
        sender: int,
        receivers: Sequence[int],
        message: tuple[int, int, int, Ended, Ended],
        length: float,
        fates: list[tuple[float, bool]] | None,
        rings: list[Callable[[Any], None]],
    ):
        self.env, self.callbacks = env, rings
        self.sender, self.receivers, self.message = sender, receivers, message
        self.length, self.fates = length, fates


class RadioMedium:
    """Sends, one by one or as they come, what senders hand over; the air tells who heard it.

    Parameters
    ----------
    world : World
    ends : Ends
    airtime, delays, losses : callable
    air : Air
        What is on the air, and where it is heard.
    access : Access, optional
        When a sender may begin; at once when left out.
    while_sending : {"wait", "overlap", "skip"}
        What becomes of a message whose sender is still busy with another one.
    arrives_at_once : bool
        Whether there is neither delay nor loss, so that they need not be asked for.
    """

    def __init__(
        self,
        world: World,
        ends: Ends,
        airtime: Airtime,
        delays: Delays,
        losses: Losses,
        air: Air,
        access: Access | None,
        while_sending: str,
        arrives_at_once: bool,
    ):
        self._env, self._present, self._after = world.env, world.present, world.after
        self._schedule = world.env.schedule
        self._ends = ends
        self._airtime, self._delays, self._losses = airtime, delays, losses
        self._arrives_at_once = arrives_at_once
        self._quiet = QuietMedium(world, ends, airtime, delays, losses)
        self._air, self._access = air, access
        self._one_by_one, self._skips = while_sending != "overlap", while_sending == "skip"
        # Who is sending, or about to; what else it has to send. Index −1 is the learner's place, the last one.
        self._sending = bytearray(world.links.agents + 1)
        self._waiting: dict[int, deque[Transmission]] = {}
        self._rings: list[Callable[[Any], None]] = [self._finish]

    def carry(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
        lane: int = 0,
    ) -> None:
        """Send as soon as the sender and the rules of access allow; what takes no airtime disturbs nobody."""
        length = self._airtime.question if version == NONE else self._airtime.loaded
        if not length:
            self._quiet.carry(sender, receivers, seq, version, release, heard, lost, lane)
            return
        fates = None
        if not self._arrives_at_once:
            delays, losses = self._delays, self._losses
            fates = [
                (delays(sender, receiver, lane), losses(sender, receiver, lane)) for receiver in receivers
            ]
        message = seq, version, release, heard, lost
        one = Transmission(self._env, sender, receivers, message, length, fates, self._rings)
        if self._one_by_one:
            if self._sending[sender]:
                if self._skips:
                    self._give_up(one, BUSY)
                else:
                    self._waiting.setdefault(sender, deque()).append(one)
                return
            self._sending[sender] = 1
        if self._access is None:
            self._air.begin(one)
            self._schedule(one, NORMAL, length)
        else:
            self._access.ask(one, self._begin, self._refuse)

    def _ask(self, one: Transmission) -> None:
        """Begin when the rules of access allow."""
        if self._access is None:
            self._begin(one)
        else:
            self._access.ask(one, self._begin, self._refuse)

    def _begin(self, one: Transmission) -> None:
        """Put a transmission on the air."""
        if not self._present[one.sender]:
            self._refuse(one, OFFLINE)
            return
        self._air.begin(one)
        self._schedule(one, NORMAL, one.length)

    def _finish(self, one: Transmission) -> None:
        """End a transmission: each receiver has heard it or not."""
        sender, message, fates = one.sender, one.message, one.fates
        air, ends = self._air, self._ends
        is_clear = air.reaches_all(one)
        for place, receiver in enumerate(one.receivers):
            delay, is_lost = fates[place] if fates is not None else _AT_ONCE
            if not is_clear and not air.hears(one, receiver):
                ends.fail(sender, receiver, *message, COLLISION)
            elif delay:
                self._travel(one, receiver, delay, is_lost)
            elif is_lost:
                ends.fail(sender, receiver, *message, LOSS)
            else:
                ends.arrive(sender, receiver, *message)
        if self._one_by_one:
            self._next(sender)

    def _travel(self, one: Transmission, receiver: int, delay: float, is_lost: bool) -> None:
        """Let a message that was heard arrive, or be lost, after a while."""

        def end() -> None:
            message = one.sender, receiver, *one.message
            if is_lost:
                self._ends.fail(*message, LOSS)
            else:
                self._ends.arrive(*message)

        self._after(delay, end)

    def _refuse(self, one: Transmission, outcome: int) -> None:
        """Give a transmission up that would have been next."""
        self._give_up(one, outcome)
        if self._one_by_one:
            self._next(one.sender)

    def _give_up(self, one: Transmission, outcome: int) -> None:
        for receiver in one.receivers:
            self._ends.fail(one.sender, receiver, *one.message, outcome)

    def _next(self, sender: int) -> None:
        """Send what the sender has waiting, or let it be free."""
        waiting = self._waiting.get(sender) if self._waiting else None
        if not waiting:
            self._sending[sender] = 0
            return
        one = waiting.popleft()
        if not waiting:
            del self._waiting[sender]
        self._ask(one)
