"""The order of events at one instant: the checker accepts the order of the model, and refuses another one.

Streams are written by hand, in blocks: what one appointment brings about.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    SEND,
    WAKE,
    Channel,
    Gossip,
    Graph,
    Network,
    ring,
    star,
)

from p2psim.core.events import (
    COLLISION,
    EVENT,
    JOIN,
    LEAVE,
    LOSS,
    NEIGHBOURS,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    RETRY,
)
from p2psim.network.availability import AllOf, Always, Outage, Renewal
from p2psim.network.verify import EventsError, verify
from p2psim.network.verify_messages import Resending
from p2psim.network.verify_order import UNKNOWN, Ordering


@dataclass(frozen=True)
class Row:
    """An event; its cause is the name of another one."""

    name: str
    time: float
    kind: int
    agent: int
    peer: int = NOBODY
    version: int = NONE
    cause: str = ""
    release: int = NONE
    outcome: int = OK


def stream(rows: list[Row]) -> np.ndarray:
    """Rows as events, numbered in their order."""
    places = {row.name: place for place, row in enumerate(rows)} | {"": NONE}
    return np.array(
        [
            (place, row.time, row.version, places[row.cause], row.agent, row.peer, row.release, row.kind, row.outcome)
            for place, row in enumerate(rows)
        ],
        EVENT,
    )  # fmt: skip


def told(agent: int, peer: int, time: float, release: int = 0) -> list[Row]:
    """An agent wakes, commits, and sends its model."""
    a = f"{agent}.{release}"
    return [
        Row(f"wake {a}", time, WAKE, agent),
        Row(f"commit {a}", time, COMMIT, agent, NOBODY, release + 1, f"wake {a}", release),
        Row(f"send {a}", time, SEND, agent, peer, release + 1, f"commit {a}", release),
    ]


def heard(agent: int, peer: int, time: float, lost: int = OK, release: int = 0) -> list[Row]:
    """An agent hears what another has sent, or does not."""
    kind = DELIVER if lost == OK else DROP
    name, cause = f"end {peer}.{release} at {agent}", f"send {peer}.{release}"
    return [Row(name, time, kind, agent, peer, release + 1, cause, release, lost)]


def leave(agent: int, time: float) -> list[Row]:
    return [Row(f"leave {agent} at {time}", time, LEAVE, agent)]


def join(agent: int, time: float) -> list[Row]:
    return [Row(f"join {agent} at {time}", time, JOIN, agent)]


def asked(number: int, time: float, version: int = 0) -> list[Row]:
    """A learner asks all."""
    return [Row(f"query {number}", time, SEND, LEARNER, NEIGHBOURS, version)]


def took(owner: int, number: int, time: float, version: int = 0) -> list[Row]:
    """An owner hears the learner."""
    return [
        Row(f"heard {number} by {owner}", time, DELIVER, owner, LEARNER, version, f"query {number}"),
    ]


def answered(owner: int, number: int, time: float, version: int = 0, release: int = 0) -> list[Row]:
    """An owner answers."""
    cause = f"heard {number} by {owner}"
    return [Row(f"answer {number} of {owner}", time, SEND, owner, LEARNER, version, cause, release)]


def unheard(owner: int, number: int, time: float) -> list[Row]:
    """An answer is lost on its way."""
    cause = f"answer {number} of {owner}"
    return [Row(f"lost {number} of {owner}", time, DROP, LEARNER, owner, 0, cause, 0, LOSS)]


def away(owner: int, number: int, time: float) -> list[Row]:
    """An owner that is away does not answer."""
    cause = f"heard {number} by {owner}"
    return [Row(f"missing {number} of {owner}", time, DROP, owner, LEARNER, 0, cause, NONE, OFFLINE)]


ARRIVAL, AIRTIME = Ordering("arrival", turns_alone=True), Ordering("airtime", turns_alone=True)


@dataclass(frozen=True)
class Case:
    """What happens before an instant, and then at it, in blocks that nothing at this instant brought about."""

    links: Graph
    before: list[list[Row]]
    blocks: list[list[Row]]
    order: Ordering = ARRIVAL

    def check(self, blocks: Iterable[list[Row]]) -> None:
        check(self.links, [*self.before, *blocks], self.order)


def check(links: Graph, blocks: list[list[Row]], order: Ordering, **options: Any) -> None:
    rows = [row for block in blocks for row in block]
    assert verify([stream(rows)], links, order=order, **options) == len(rows)


TWO_SENT = [told(0, 1, 1.0), told(3, 2, 1.5)]
#: Three owners were asked and have heard.
ASKED = [asked(1, 1.0), *(took(owner, 1, 1.5) for owner in range(3))]
CASES = {
    "leaves before arrivals": Case(ring(4), TWO_SENT, [leave(0, 2.0), heard(1, 0, 2.0)]),
    "joins before arrivals": Case(
        ring(4), [leave(0, 0.5), told(3, 2, 1.5)], [join(0, 2.0), heard(2, 3, 2.0)]
    ),
    "leaves before wakes": Case(ring(4), [], [leave(2, 2.0), told(0, 1, 2.0)]),
    "leaves before queries": Case(star(3), [], [leave(2, 2.0), asked(1, 2.0)]),
    "leaves before answers": Case(star(3), ASKED, [leave(2, 2.0), answered(1, 1, 2.0)]),
    "leaves by agent": Case(ring(4), [], [leave(1, 2.0), leave(3, 2.0)]),
    "leaves and joins by agent": Case(ring(4), [leave(1, 1.0)], [join(1, 2.0), leave(3, 2.0)]),
    "the learner's leave first": Case(star(3), [], [leave(LEARNER, 2.0), leave(0, 2.0)]),
    "arrivals before wakes": Case(ring(4), TWO_SENT, [heard(1, 0, 2.0), told(2, 3, 2.0)]),
    "losses before wakes": Case(ring(4), TWO_SENT, [heard(1, 0, 2.0, LOSS), told(2, 3, 2.0)]),
    "arrivals by receiver": Case(ring(4), TWO_SENT, [heard(1, 0, 2.0), heard(2, 3, 2.0)]),
    "losses by receiver, too": Case(ring(4), TWO_SENT, [heard(1, 0, 2.0, LOSS), heard(2, 3, 2.0)]),
    "arrivals at one receiver by number": Case(
        ring(4), [told(0, 1, 1.0), told(2, 1, 1.5)], [heard(1, 0, 2.0), heard(1, 2, 2.0)]
    ),
    "ends of airtime by sender": Case(
        ring(4), [told(3, 0, 1.0), told(1, 2, 1.5)], [heard(2, 1, 2.0), heard(0, 3, 2.0)], AIRTIME
    ),
    "collisions by sender": Case(
        ring(4),
        [told(3, 0, 1.0), told(1, 2, 1.5)],
        [heard(2, 1, 2.0, COLLISION), heard(0, 3, 2.0, COLLISION)],
        UNKNOWN,
    ),
    # By sender 0 or by receiver 1, before sender 3 or receiver 2: the other way round neither will do.
    "ends of airtime or arrivals": Case(ring(4), TWO_SENT, [heard(1, 0, 2.0), heard(2, 3, 2.0)], UNKNOWN),
    "ends of airtime or arrivals before wakes": Case(
        ring(4), TWO_SENT, [heard(1, 0, 2.0), told(2, 3, 2.0)], UNKNOWN
    ),
    "answers before arrivals": Case(
        star(3), [*ASKED, answered(0, 1, 1.8)], [answered(2, 1, 2.0), unheard(0, 1, 2.0)]
    ),
    "answers by owner": Case(star(3), ASKED, [answered(0, 1, 2.0), answered(2, 1, 2.0)]),
    "answers that are not given by owner": Case(
        star(3), [*ASKED, leave(0, 1.7)], [away(0, 1, 2.0), answered(2, 1, 2.0)]
    ),
    "answers before the next query": Case(star(3), ASKED, [answered(2, 1, 2.0), asked(2, 2.0)]),
    "arrivals before the next query": Case(
        star(3), [*ASKED, answered(2, 1, 1.8)], [unheard(2, 1, 2.0), asked(2, 2.0)]
    ),
    "wakes by agent": Case(ring(4), [], [told(0, 1, 2.0), told(3, 2, 2.0)]),
    "all of a star": Case(
        star(3),
        [*ASKED, answered(0, 1, 1.8)],
        [leave(1, 2.0), answered(2, 1, 2.0), unheard(0, 1, 2.0), asked(2, 2.0)],
    ),
    "all of a graph": Case(
        ring(5),
        [told(0, 1, 1.0), told(4, 3, 1.5)],
        [leave(2, 2.0), heard(1, 0, 2.0), heard(3, 4, 2.0), told(0, 1, 2.0, 1), told(4, 3, 2.0, 1)],
    ),
}


@pytest.mark.parametrize("name", CASES)
class TestIndependentEvents:
    def test_the_order_of_the_model_is_accepted(self, name: str) -> None:
        CASES[name].check(CASES[name].blocks)

    def test_every_other_order_is_refused(self, name: str) -> None:
        _, *others = itertools.permutations(CASES[name].blocks)
        for blocks in others:
            with pytest.raises(EventsError, match="due before other events of that instant"):
                CASES[name].check(blocks)

    def test_at_different_times_the_order_is_free(self, name: str) -> None:
        for blocks in itertools.permutations(CASES[name].blocks):
            CASES[name].check(
                [replace(row, time=2.0 + place) for row in block] for place, block in enumerate(blocks)
            )


class TestWhatCannotBeTold:
    """What may follow from something at its own instant is not compared with what is due independently."""

    def test_who_leaves_together_with_whom(self) -> None:
        leaves = [leave(3, 2.0), leave(1, 2.0)]
        check(ring(4), leaves, Ordering("arrival"))
        with pytest.raises(EventsError, match="due before"):
            check(ring(4), leaves, ARRIVAL)

    def test_who_is_away_from_the_start_on(self) -> None:
        check(ring(4), [leave(3, 0.0), leave(1, 0.0)], ARRIVAL)

    def test_whether_a_message_was_held_for_who_comes_back(self) -> None:
        before = [told(1, 0, 0.5), told(0, 3, 1.0), leave(3, 1.5)]
        check(ring(4), [*before, join(3, 2.0), heard(3, 0, 2.0), heard(0, 1, 2.0)], ARRIVAL)

    def test_whether_a_message_that_was_sent_again_took_time(self) -> None:
        again = [Row("again", 2.0, RETRY, 0, 3, 1, "send 0.0", 0, LOSS)]
        blocks = [told(1, 0, 0.5), told(0, 3, 1.0), again, heard(3, 0, 2.0), heard(0, 1, 2.0)]
        check(ring(4), blocks, ARRIVAL, resending=Resending(retries=1))

    def test_whether_an_answer_is_given_again_at_once(self) -> None:
        lost = [*ASKED, answered(0, 1, 1.8), unheard(0, 1, 2.0)]
        again = [Row("again", 2.0, SEND, 0, LEARNER, 0, "heard 1 by 0", 1)]
        check(star(3), [*lost, again], ARRIVAL, resending=Resending(fresh=1))

    def test_whether_a_round_begins_because_another_has_closed(self) -> None:
        closes = [Row("closes", 2.0, COMMIT, LEARNER, NEIGHBOURS, 1, "query 1")]
        blocks = [asked(1, 1.0), closes, asked(2, 2.0, 1), took(0, 1, 2.0)]
        check(star(3), blocks, ARRIVAL)

    def test_whom_the_waits_of_an_exchange_of_ones_own_belong_to(self) -> None:
        blocks = [*ASKED, answered(2, 1, 2.0), answered(0, 1, 2.0), asked(2, 2.0), away(1, 1, 2.0)]
        check(star(3), [*blocks[:4], leave(1, 1.7), *blocks[4:]], Ordering(own_exchange=True))


def swap(*names: str) -> list[list[Row]]:
    """A push-pull of agents 0 and 1 at one moment, its events in the order of their names."""
    rows = [
        Row("wake", 1.0, WAKE, 0),
        Row("send", 1.0, SEND, 0, 1, 0, "wake"),
        Row("heard", 1.0, DELIVER, 1, 0, 0, "send"),
        Row("back", 1.0, SEND, 1, 0, 0, "heard"),
        Row("returned", 1.0, DELIVER, 0, 1, 0, "back"),
        Row("waker", 1.0, COMMIT, 0, 1, 1, "returned", 0),
        Row("other", 1.0, COMMIT, 1, 0, 1, "heard", 0),
    ]
    return [[next(row for row in rows if row.name == name)] for name in names]


class TestWhatFollowsAtOnce:
    def test_the_waker_of_a_push_pull_commits_before_its_neighbour(self) -> None:
        """Where messages take no time; otherwise the answer may still be on its way."""
        common, rest = ("wake", "send", "heard", "back"), ("returned", "waker")
        late = swap(*common, "other", *rest)
        check(ring(3), swap(*common, *rest, "other"), Ordering("at once"))
        check(ring(3), late, Ordering("arrival"))
        with pytest.raises(EventsError, match=r"event 4 \(commit of agent 1 .*event 3 takes no time"):
            check(ring(3), late, Ordering("at once"))

    def test_nothing_comes_between_a_wake_and_its_commit(self) -> None:
        wake, commit, send = told(0, 1, 2.0)
        with pytest.raises(EventsError, match="does not follow its cause at once"):
            check(ring(4), [[wake], told(3, 2, 2.0), [commit], [send]], ARRIVAL)

    @pytest.mark.parametrize(
        "then",
        [Row("then", 2.0, COMMIT, 1, 0, 1, "heard", 0), Row("then", 2.0, SEND, 1, 0, 0, "heard")],
        ids=["commit", "answer"],
    )
    def test_nothing_comes_between_a_delivery_and_what_it_causes(self, then: Row) -> None:
        asks = [Row("wake", 1.0, WAKE, 0), Row("send", 1.0, SEND, 0, 1, 0, "wake")]
        blocks = [asks, [Row("heard", 2.0, DELIVER, 1, 0, 0, "send")]]
        check(ring(4), [*blocks, [then], told(3, 2, 2.0)], ARRIVAL)
        with pytest.raises(EventsError, match="does not follow its cause at once"):
            check(ring(4), [*blocks, told(3, 2, 2.0), [then]], ARRIVAL)

    def test_a_message_that_takes_no_time_ends_before_anything_else(self) -> None:
        for time in (1.0, 2.0):
            with pytest.raises(EventsError, match="takes no time and has not ended"):
                check(ring(4), [told(0, 1, 1.0), told(3, 2, time)], Ordering("at once"))

    def test_receivers_hear_a_message_that_takes_no_time_in_order(self) -> None:
        before, ends = [asked(1, 1.0)], [took(owner, 1, 1.0) for owner in range(3)]
        check(star(3), [*before, *ends], Ordering("at once"))
        for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0)):
            with pytest.raises(EventsError, match="hear it in order"):
                check(star(3), [*before, *(ends[owner] for owner in order)], Ordering("at once"))

    def test_for_who_is_offline_it_may_be_held(self) -> None:
        blocks = [leave(1, 0.5), asked(1, 1.0), took(0, 1, 1.0), took(2, 1, 1.0), asked(2, 2.0)]
        with pytest.raises(EventsError, match="event 4 takes no time"):
            check(star(3), [*blocks, leave(2, 3.0)], Ordering("at once"))
        check(star(3), [*blocks[:4], join(1, 3.0), took(1, 1, 3.0)], Ordering("at once"))


class TestWhatANetworkTells:
    @pytest.mark.parametrize(
        ("channel", "ends"),
        [
            (Channel(), "at once"),
            (Channel(loss=0.5), "at once"),
            (Channel(latency=0.1), "arrival"),
            (Channel(airtime=0.1), "arrival"),
            (Channel(bandwidth=2.0, latency=0.1), "arrival"),
            (Channel(collision="aloha"), "at once"),
            (Channel(collision="slotted", latency=0.1), "arrival"),
            (Channel(collision="aloha", airtime=0.1), "airtime"),
            (Channel(collision="carrier-sense", bandwidth=2.0), "airtime"),
            (Channel(collision="aloha", airtime=0.1, latency=0.1), None),
        ],
    )
    def test_when_messages_end(self, channel: Channel, ends: str | None) -> None:
        assert Network(ring(3), Gossip(), channel).ordering.ends == ends

    def test_who_leaves_together(self) -> None:
        outage, alone = Outage(up=1.0, down=1.0, regions=2), Renewal(up=1.0, down=1.0)
        for availability, is_alone in (
            (Always(), True),
            (alone, True),
            (outage, False),
            (AllOf(parts=(alone, alone)), True),
            (AllOf(parts=(alone, outage)), False),
        ):
            network = Network(ring(3), Gossip(), availability=availability)
            assert network.ordering.turns_alone == is_alone
            assert not network.ordering.own_exchange
