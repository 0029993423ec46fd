"""The order of events at one instant, as far as a stream of events tells it.

The rule is that of `p2psim.network.order`: what an event brings about at its own instant follows it at once, and what
is due at one instant independently goes by class, agent and number. A stream does not tell of every event whether
something at its own instant brought it about; what may have been brought about is not compared.
"""

from dataclasses import dataclass
from typing import Final, Literal

from p2psim.core import events as ev
from p2psim.network.order import AIRTIME, ARRIVAL, CHANNEL, PRESENCE, REGULAR, WAIT, WAKE, Key
from p2psim.network.verify_messages import Event, Resending
from p2psim.network.verify_state import VerifierState


@dataclass(frozen=True)
class Ordering:
    """What is known of a network beside its events; each says more, and so more is checked.

    Attributes
    ----------
    ends : {"at once", "arrival", "airtime"}, optional
        When messages end: at once; when they arrive, each receiver for itself; or with their airtime, for the sender.
        None where it differs, or is not known.
    turns_alone : bool
        Whether no agents leave and come back together.
    own_exchange : bool
        Whether the exchange is a part of one's own, whose waits may belong to anybody.
    own_links : bool
        Whether it is not known when links come and go.
    computes : bool
        Whether agents take time to compute.
    in_rounds : bool
        Whether agents have no clocks and act in rounds.
    """

    ends: Literal["at once", "arrival", "airtime"] | None = None
    turns_alone: bool = False
    own_exchange: bool = False
    own_links: bool = False
    computes: bool = False
    in_rounds: bool = False


#: Where nothing is known but that the exchange is one of p2psim.
UNKNOWN: Final = Ordering()


class OrderChecker:
    """Follows the events of one instant after the other.

    Parameters
    ----------
    known : Ordering
    state : VerifierState
        What the events so far have left.
    resending : Resending
        What may be sent again.
    """

    def __init__(self, known: Ordering, state: VerifierState, resending: Resending):
        self.known, self._state = known, state
        self._retries, self._fresh = resending.retries > 0, resending.fresh > 0
        self._follows_ends = known.ends == "at once" and not self._retries
        self._time = -1.0
        # Number of the first event of this instant, and of the last that nothing at this instant brought about.
        self._first = self._root = 0
        self._last: Key = ()
        self._retried: set[tuple[int, int]] = set()
        self._joined: set[int] = set()
        self._has_closed = False
        # Messages that take no time and have not ended everywhere: number of the send, and receivers.
        self._ending: list[tuple[int, set[int]]] = []

    def places(self, event: Event) -> tuple[Key, ...]:
        """Places that the next event may have; none where something at its instant may have brought it about.

        To be asked before the event changes the state.

        Raises
        ------
        EventsError
        """
        if event.time > self._time:
            self._begin(event)
        return self._places(event)

    def check(self, event: Event, places: tuple[Key, ...]) -> None:
        """Check an event, whose places are those that `places` gave.

        Raises
        ------
        EventsError
        """
        if places:
            later = [place for place in places if place >= self._last]
            event.must(bool(later), "it is due before other events of that instant, which precede it")
            self._last, self._root = min(later), event.seq
        elif self._is_at_once(event):
            event.must(event.cause >= self._root, "it does not follow its cause at once")
        if self._follows_ends:
            self._follow(event)
        if event.kind == ev.RETRY:
            self._retried.add((event.cause, event.peer))
        elif event.kind == ev.JOIN:
            self._joined.add(event.agent)
        elif (event.kind == ev.COMMIT and event.peer == ev.NEIGHBOURS) or self._is_absent(event):
            self._has_closed = True

    def _begin(self, event: Event) -> None:
        for seq, receivers in self._ending:
            event.must(not receivers, f"the message of event {seq} takes no time and has not ended")
        self._time = event.time
        self._first = self._root = event.seq
        self._last, self._has_closed = (), False
        self._retried.clear()
        self._joined.clear()
        self._ending.clear()

    def _places(self, event: Event) -> tuple[Key, ...]:
        kind, agent = event.kind, event.agent
        if kind in (ev.LEAVE, ev.JOIN):
            # Who begins offline leaves at time 0, in the order in which reasons are given.
            return ((PRESENCE, agent),) if self.known.turns_alone and event.time > 0 else ((PRESENCE,),)
        if kind == ev.WAKE:
            if self.known.own_exchange:
                return ()
            if self.known.in_rounds:
                # A round that has just closed may begin the next one now.
                return () if self._has_closed else ((REGULAR, ev.LEARNER),)
            return ((WAKE, agent),)
        if kind in (ev.SEND, ev.DELIVER, ev.DROP) and event.cause < self._first:
            return self._sent(event) if kind == ev.SEND else self._ended(event)
        if kind == ev.COMMIT and self.known.computes and agent >= 0 and event.cause < self._first:
            # A round in which agents computed before they sent closes when nothing is waited for.
            return () if self.known.in_rounds and self._works_first else self._computed(event)
        return ()

    @property
    def _works_first(self) -> bool:
        """Whether agents compute before they send."""
        return self._state.by_edge or self._state.conduct.works_first

    def _computed(self, event: Event) -> tuple[Key, ...]:
        """Places of what follows when an agent has computed: it may have returned with nothing left to compute."""
        is_free = self.known.own_exchange or event.agent in self._joined
        return () if is_free else ((WAIT, event.agent, event.cause),)

    def _sent(self, event: Event) -> tuple[Key, ...]:
        """Places of a send that nothing of this instant is the cause of."""
        if self.known.own_exchange:
            return ()
        if event.cause == ev.NONE:
            # A round that has just closed may begin the next one now.
            return () if self._has_closed else ((REGULAR, ev.LEARNER),)
        # An answer that is given again may follow its loss; who waited is served when another has been.
        may_follow = self._fresh or event.agent == ev.LEARNER
        return () if may_follow else self._computed(event)

    def _ended(self, event: Event) -> tuple[Key, ...]:
        """Places of a delivery or a drop of what was sent, or heard, before this instant."""
        agent, seq, ends = event.agent, event.cause, self.known.ends
        if seq not in self._state.open:
            is_late = event.kind == ev.DROP and event.outcome == ev.OFFLINE and not self.known.own_exchange
            origin = self._state.causes.get(seq)
            return ((WAIT, agent, seq),) if is_late and origin and origin.kind == ev.DELIVER else ()
        if (seq, agent) in self._retried or agent in self._joined:
            return ()
        if event.kind == ev.DROP and (self._retries or event.outcome not in (ev.LOSS, ev.COLLISION)):
            return ()
        with_airtime, arrival = (CHANNEL, event.peer, seq, AIRTIME, agent), (CHANNEL, agent, seq, ARRIVAL)
        if event.outcome == ev.COLLISION or ends == "airtime":
            return (with_airtime,)
        return (arrival,) if ends == "arrival" else (with_airtime, arrival)

    def _is_absent(self, event: Event) -> bool:
        """Whether an agent that took part in a round is away when it closes."""
        return self.known.in_rounds and event.kind == ev.DROP and event.peer == ev.NOBODY

    def _is_at_once(self, event: Event) -> bool:
        """Whether an event can but follow its cause at once, the cause being of this instant."""
        if event.cause < self._first or self.known.own_exchange:
            return False
        # A wait may be so short that it does not move the clock.
        waits = self.known.computes and event.agent != ev.LEARNER
        if event.kind == ev.COMMIT:
            return event.peer != ev.NEIGHBOURS and not waits
        if event.kind == ev.BEGIN:
            return not self.known.in_rounds or self._works_first
        is_owner = event.agent != ev.LEARNER and self._state.links.star
        return event.kind == ev.SEND and not is_owner and not (waits and self._works_first)

    def _follow(self, event: Event) -> None:
        """Check that a message which takes no time has ended everywhere before anything else happens."""
        ending = self._ending
        while ending and not ending[-1][1]:
            ending.pop()
        if ending:
            seq, receivers = ending[-1]
            is_brought_about = event.cause >= seq or event.outcome == ev.SUPERSEDED
            event.must(is_brought_about, f"the message of event {seq} takes no time and has not ended")
            if event.cause == seq and event.kind in (ev.DELIVER, ev.DROP) and event.agent in receivers:
                event.must(event.agent == min(receivers), "receivers of a message hear it in order")
                receivers.discard(event.agent)
        if event.kind == ev.SEND:
            # For who is offline a message may be held.
            ending.append((event.seq, self._state.receivers(event) - self._state.offline))
