"""Who is there: what every kind keeps to, and what is refused."""

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    SEND,
    WAKE,
    Broadcast,
    Channel,
    Gossip,
    Network,
    Poll,
    Request,
    Round,
    complete,
    of_kind,
    ring,
    star,
)
from pydantic import TypeAdapter, ValidationError

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError
from p2psim.core.events import JOIN, LEAVE, NOBODY, NONE, OFFLINE
from p2psim.core.randomness import Streams
from p2psim.network.availability import (
    AllOf,
    Always,
    AnyAvailability,
    Bernoulli,
    Diurnal,
    Join,
    LearnerOutage,
    Leave,
    Outage,
    Remove,
    Renewal,
    Scripted,
)
from p2psim.network.availability.absence import Depends, tilted
from p2psim.network.availability.renewal import LognormalSpans, WeibullSpans
from p2psim.network.availability.schedules import ScriptedInterval
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import verify

AGENTS = 6
MEMBERS = Members(
    tuple(f"a{i}" for i in range(AGENTS)),
    ("x", "x", "y", "y", "y", "z"),
    {"records": np.array([10, 20, 30, 40, 50, 600]), "label": np.linspace(0, 1, AGENTS)},
)
KINDS: dict[str, AnyAvailability] = {
    "bernoulli": Bernoulli(drop=0.6),
    "renewal": Renewal(up=3.0, down={"x": 1.0, "y": 4.0, "a5": 9.0}),
    "renewal, heavy tails, held": Renewal(
        up=2.0, participation=0.4, up_law=LognormalSpans(), down_law=WeibullSpans(), messages="held"
    ),
    "outage": Outage(up=4.0, down=2.0),
    "outage of regions": Outage(up=4.0, participation=0.5, regions=2, rejoin="reset"),
    "diurnal": Diurnal(period=7.0, participation=0.3),
    "leave": Leave(after=Distribution(exponential=8.0), share=0.5),
    "join": Join(after=Distribution(uniform=(2.0, 9.0)), share=0.6, rejoin="fetch"),
    "remove": Remove(by="records", share=0.3, at=5.0),
    "all of": AllOf(
        parts=(Renewal(up=5.0, down=2.0), Renewal(up=9.0, down=2.0), Bernoulli(drop=0.2)), messages="held"
    ),
    "learner": LearnerOutage(up=3.0, down=1.0, messages="held"),
}
EXCHANGES: dict[str, tuple[Graph, Exchange]] = {
    "request": (star(AGENTS), Request(service=Distribution(exponential=0.3))),
    "request, queued": (star(AGENTS), Request(service=0.4, busy="queue", served_clock="stops")),
    "poll": (star(AGENTS), Poll(response=Distribution(exponential=0.5))),
    "round": (star(AGENTS), Round(response=Distribution(exponential=0.5), deadline=1.5)),
    "broadcast": (ring(AGENTS), Broadcast()),
    "pull": (complete(AGENTS), Gossip(mode="pull")),
    "push-pull": (ring(AGENTS), Gossip(mode="push-pull")),
    "edge": (ring(AGENTS), Gossip(mode="edge")),
}
CHANNELS = {"ideal": Channel(), "bad": Channel(latency=Distribution(exponential=0.8), loss=0.2)}


def play(
    exchange: str, kind: AnyAvailability, channel: str = "ideal", seed: int = 0, time: float = 40.0
) -> np.ndarray:
    where, pattern = EXCHANGES[exchange]
    network = Network(where, pattern, CHANNELS[channel], kind, members=MEMBERS)
    return simulate_events(network, Streams(seed), time=time).read()


def presence(events: np.ndarray) -> np.ndarray:
    """Whether the agent of each event is there just before it, by a plain reading of joins and leaves."""
    away: set[int] = set()
    there = np.empty(events.size, bool)
    for i, (kind, agent) in enumerate(zip(events["kind"].tolist(), events["agent"].tolist(), strict=True)):
        there[i] = agent not in away
        if kind == LEAVE:
            away.add(agent)
        elif kind == JOIN:
            away.remove(agent)
    return there


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_streams_keep_all_rules_and_nobody_acts_while_away(kind: str, exchange: str, channel: str) -> None:
    where, pattern = EXCHANGES[exchange]
    if kind == "learner" and not where.star:
        with pytest.raises(MeaningError, match="for a star"):
            play(exchange, KINDS[kind])
        return
    events = play(exchange, KINDS[kind], channel)
    by_edge = isinstance(pattern, Gossip) and pattern.mode == "edge"
    assert verify([events], where, by_edge=by_edge) == events.size
    there = presence(events)
    acts = np.isin(events["kind"], (WAKE, SEND, DELIVER, COMMIT))
    assert there[acts].all()
    assert len(of_kind(events, COMMIT)) > 0
    assert play(exchange, KINDS[kind], channel).tobytes() == events.tobytes()


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(EXCHANGES)),
    st.floats(0.2, 9),
    st.floats(0.2, 9),
    st.integers(0, 99),
    st.booleans(),
)
def test_any_churn_keeps_the_rules(exchange: str, up: float, down: float, seed: int, held: bool) -> None:
    where, pattern = EXCHANGES[exchange]
    kind = Renewal(up=up, down=down, messages="held" if held else "lost", rejoin="fetch")
    events = play(exchange, kind, "bad", seed, time=25.0)
    by_edge = isinstance(pattern, Gossip) and pattern.mode == "edge"
    assert verify([events], where, by_edge=by_edge) == events.size


@pytest.mark.parametrize("kind", [name for name in KINDS if name not in ("learner", "bernoulli")])
def test_absences_do_not_depend_on_what_agents_do(kind: str) -> None:
    """Joins and leaves are the same under another exchange, another channel and other clocks."""

    def turns(exchange: str, channel: str) -> list[tuple[float, int, int]]:
        events = play(exchange, KINDS[kind], channel)
        rows = events[np.isin(events["kind"], (JOIN, LEAVE))]
        return list(zip(rows["time"].tolist(), rows["kind"].tolist(), rows["agent"].tolist(), strict=True))

    assert turns("broadcast", "ideal") == turns("pull", "bad") == turns("request", "ideal")


def test_one_agents_absence_moves_no_other_agents_draws() -> None:
    def leaves(kind: AnyAvailability, agent: int) -> list[float]:
        events = play("broadcast", kind)
        return events["time"][(events["kind"] == LEAVE) & (events["agent"] == agent)].tolist()

    one = Renewal(up=3.0, down={"x": 1.0, "y": 4.0, "z": 9.0})
    other = Renewal(up=3.0, down={"x": 2.5, "y": 4.0, "z": 9.0})
    assert leaves(one, 3) == leaves(other, 3)
    assert leaves(one, 0) != leaves(other, 0)


def test_messages_to_who_is_away_are_lost_or_held() -> None:
    script: dict[str, Any] = {"intervals": [{"agent": 1, "begin": 5.0, "end": 20.0}], "spans_are": "absent"}
    lost = play("broadcast", Scripted(**script))
    dropped = lost[(lost["kind"] == DROP) & (lost["agent"] == 1)]
    assert len(dropped) > 5
    assert (dropped["outcome"] == OFFLINE).all()
    assert ((dropped["time"] >= 5) & (dropped["time"] <= 20)).all()
    held = play("broadcast", Scripted(**script, messages="held"))
    assert not (held["kind"] == DROP).any()
    late = held[(held["kind"] == DELIVER) & (held["agent"] == 1) & (held["time"] == 20.0)]
    assert len(late) == len(dropped)
    assert (np.diff(late["cause"]) > 0).all()


def test_what_is_held_for_who_never_returns_is_lost() -> None:
    events = play("broadcast", Remove(by="records", share=0.2, at=5.0, messages="held"))
    gone = int(of_kind(events, LEAVE)["agent"][0])
    assert gone == 5  # the one with the most records
    ends = events[(events["agent"] == gone) & (events["kind"] == DROP)]
    sent = events[(events["kind"] == SEND) & np.isin(events["agent"], (4, 0)) & (events["time"] > 5)]
    assert len(ends) == len(sent) > 0


def test_run_ends_when_everybody_is_gone() -> None:
    where, pattern = EXCHANGES["request"]
    network = Network(where, pattern, availability=Leave(after=3.0), members=MEMBERS)
    stream = simulate_events(network, Streams(0), commits=10_000)
    events = stream.read()
    assert stream.ended == "exhausted"
    assert events["time"][-1] <= 3.0 + 5


def test_owner_that_left_before_it_answered_gives_no_answer_and_no_release() -> None:
    kind = Renewal(up=0.4, down=0.4)
    for exchange in ("request", "poll"):
        events = play(exchange, kind)
        unanswered = events[
            (events["kind"] == DROP) & (events["outcome"] == OFFLINE) & (events["peer"] == LEARNER)
        ]
        causes = events[unanswered["cause"]]
        given_up = unanswered[causes["kind"] == DELIVER]
        assert len(given_up) > 5
        assert (given_up["release"] == NONE).all()


def test_late_joiner_fetches_a_model_of_that_moment_or_comes_without() -> None:
    join = of_kind(play("request", Join(after=9.0, share=0.5, rejoin="fetch")), JOIN)
    assert (join["peer"] == LEARNER).all()
    assert (join["version"] > 0).all()
    stale = of_kind(play("request", Join(after=9.0, share=0.5)), JOIN)
    assert (stale["peer"] == NOBODY).all()
    assert (stale["version"] == NONE).all()
    reset = of_kind(play("request", Join(after=9.0, share=0.5, rejoin="reset")), JOIN)
    assert (reset["version"] == 0).all()


def test_days_begin_and_end_where_they_should() -> None:
    kind = Diurnal(period=10.0, participation=0.25, phase={"x": 0.1, "y": 0.9, "z": 1.0})
    events = play("broadcast", kind, time=40.0)
    for agent, first in ((0, 1.0), (2, 9.0), (5, 0.0)):
        mine = events[events["agent"] == agent]
        wakes = mine["time"][mine["kind"] == WAKE]
        assert len(wakes) > 3
        assert ((wakes - first) % 10.0 <= 2.5).all()
        back = mine["time"][mine["kind"] == JOIN]
        assert np.allclose((back - first) % 10.0, 0) or np.allclose((back - first) % 10.0, 10)


def test_days_may_differ_between_agents() -> None:
    there = {"x": 0.25, "y": 0.5, "z": 0.125}
    kind = Diurnal(period=10.0, participation=there, phase=0.0)
    assert kind.shares(MEMBERS, ring(AGENTS)).tolist() == [there[group] for group in MEMBERS.groups or ()]
    events = play("broadcast", kind, time=60.0)
    wakes = events[events["kind"] == WAKE]
    for agent, group in enumerate(MEMBERS.groups or ()):
        mine = wakes["time"][wakes["agent"] == agent] % 10.0
        assert (mine <= 10 * there[group]).all()
        assert mine.max() > 5 * there[group]


def test_outages_may_differ_between_groups_and_not_within_one() -> None:
    """In the long run each group is there for its share of the time."""
    there = {"x": 0.25, "y": 0.5, "z": 0.9}
    links, groups = ring(AGENTS), MEMBERS.groups or ()
    kind = Outage(up=1.0, participation=there)
    assert kind.shares(MEMBERS, links) == pytest.approx([there[group] for group in groups])
    events = play("broadcast", kind, time=3000.0)
    for agent, group in enumerate(groups):
        mine = events[(events["agent"] == agent) & np.isin(events["kind"], (JOIN, LEAVE))]
        spans = np.diff(mine["time"])[mine["kind"][:-1] == JOIN]
        assert spans.sum() / 3000 == pytest.approx(there[group], abs=0.08)
    mixed = {str(i): 0.5 for i in range(AGENTS)} | {"1": 0.25}
    with pytest.raises(MeaningError, match="agents that are away together need the same number"):
        Outage(up=1.0, participation=mixed).shares(MEMBERS, links)
    with pytest.raises(MeaningError, match="agents that are away together need the same number"):
        Outage(up=1.0, participation=there, regions=2).shares(MEMBERS, links)


@pytest.mark.parametrize("wrong", [0.0, -0.5, 1.0, 1.0000001])
@pytest.mark.parametrize("kind", [Bernoulli, Renewal, Outage, Diurnal])
def test_a_share_of_a_column_that_cannot_be_names_its_owner(kind: Any, wrong: float) -> None:
    """And is written so that it does not read as a share that can be."""
    shares = np.full(AGENTS, 0.5)
    shares[3] = wrong
    members = Members(MEMBERS.labels, MEMBERS.groups, MEMBERS.numbers, {"share": shares})
    keys: dict[str, Any] = {
        Renewal: {"up": 1.0},
        Outage: {"up": 1.0, "regions": 1},
        Diurnal: {"period": 2.0},
    }.get(kind, {})
    part = kind(participation={"column": "share"}, **keys)
    if kind is Bernoulli and wrong == 1:
        assert part.shares(members, ring(AGENTS))[3] == 1
        return
    written = {0.0: "0", -0.5: "-0.5", 1.0: "1", 1.0000001: "1.0000001"}[wrong]
    with pytest.raises(MeaningError, match=f"owner {MEMBERS.labels[3]} has {written} in column") as caught:
        part.shares(members, ring(AGENTS))
    assert caught.value.faults[0].key == "network.availability.participation"


def test_table_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("agent,begin,end\na0,0,4\na0,4,6\n3,2,.inf\n", encoding="utf-8")
    events = play("broadcast", Scripted(path=str(path)))
    wakes = of_kind(events, WAKE)
    assert wakes["time"][wakes["agent"] == 0].max() <= 6
    assert wakes["time"][wakes["agent"] == 3].min() >= 2
    assert len(events[(events["agent"] == 0) & (events["kind"] == LEAVE)]) == 1  # adjacent spans are one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agent,begin\na0,1\n", "needs columns"),
        ("agent,begin,end\nnobody,1,2\n", "no agent is called 'nobody'"),
        ("agent,begin,end\na0,3,2\n", "must end after"),
        ("agent,begin,end\na0,x,2\n", "must be times, 0 or more, got 'x'"),
        ("agent,begin,end\na0,-1,2\n", "must be times"),
        (
            "agent,begin,end\na0,1,5\na1,1,2\na0,4,6\n",
            r"trace\.csv:4: this span of agent a0 and that at .*trace\.csv:2 overlap",
        ),
        (
            "agent,begin,end\na0,4,6\na0,1,.inf\n",
            r"trace\.csv:2: this span of agent a0 and that at .*trace\.csv:3 overlap",
        ),
        ("agent,begin,end\na0,1\n", r"trace\.csv:2: must have 3 fields, got 2"),
        ("agent,begin,end\na0,0,1\na0,1,2,3\n", r"trace\.csv:3: must have 3 fields, got 4"),
        ("agent,begin,end,end\na0,1,2,3\n", "two columns are called 'end'"),
        ("agent,begin,end\na0,,2\n", "must be times, 0 or more, got ''"),
        ("agent,begin,end\na0,nan,2\n", "must be times, 0 or more, got 'nan'"),
        ('agent,begin,end\n"a0,0,1\n', r"trace\.csv:2: "),
        (
            "agent,begin,end\n1,0,5\na1,5,6\n",
            r"trace\.csv:3: agent a1 is named twice, as '1' and as 'a1'",
        ),
    ],
)
def test_faulty_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MeaningError, match=message):
        Scripted(path=str(path)).shares(MEMBERS, ring(AGENTS))


def test_a_table_program_may_have_written_the_spans(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\xef\xbb\xbfend,agent,begin,note\r\n4,a0,0,\r\n\r\n,a1,2,x\r\n")
    assert Scripted(path=str(path)).table(MEMBERS) == {0: [(0.0, 4.0)], 1: [(2.0, math.inf)]}
    path.write_bytes(b"agent,begin,end\n\xe9,0,4\n")
    with pytest.raises(MeaningError, match="not UTF-8 text"):
        Scripted(path=str(path)).table(MEMBERS)


def test_a_number_that_may_be_a_label_with_zeros_in_front_is_refused() -> None:
    members = Members(("007", "7", "x"))
    assert set(Scripted(intervals=[ScriptedInterval(agent="7", begin=0, end=4)]).table(members)) == {1}
    assert set(Scripted(intervals=[ScriptedInterval(agent="007", begin=0, end=4)]).table(members)) == {0}
    with pytest.raises(MeaningError, match="entry 0: 7 may be the label 007; put the name in quotes"):
        Scripted(intervals=[ScriptedInterval(agent=7, begin=0, end=4)]).table(members)


@pytest.mark.parametrize("agent", ["1", 1, "2", 2])
def test_an_index_that_is_the_label_of_another_agent_is_refused_in_spans(
    tmp_path: Path, agent: str | int
) -> None:
    members = Members(("1", "2", "3"))
    (tmp_path / "trace.csv").write_text(f"agent,begin,end\n{agent},0,4\n")
    for table in (
        Scripted(path=str(tmp_path / "trace.csv")),
        Scripted(intervals=[ScriptedInterval(agent=agent, begin=0, end=4)]),
    ):
        with pytest.raises(MeaningError, match=f"'{agent}' is the label of agent"):
            table.table(members)
    spans = [ScriptedInterval(agent=label, begin=0, end=4) for label in members.labels]
    assert set(Scripted(intervals=spans).table(members)) == {0, 1, 2}  # all of them, so labels are meant


@pytest.mark.parametrize(
    "part",
    [
        {"kind": "bernoulli"},
        {"kind": "bernoulli", "drop": 0.1, "participation": 0.9},
        {"kind": "renewal", "up": 1.0},
        {"kind": "renewal", "up": 1.0, "down": -1.0},
        {"kind": "outage", "up": 1.0},
        {"kind": "diurnal", "period": 0.0, "participation": 0.5},
        {"kind": "diurnal", "period": 1.0, "participation": 1.0},
        {"kind": "outage", "up": 1.0, "participation": {"x": 1.0, "y": 0.5, "z": 0.5}},
        {"kind": "scripted"},
        {"kind": "remove", "share": 1.0},
        {"kind": "all-of", "parts": [{"kind": "bernoulli", "drop": 0.1}]},
        {"kind": "sometimes"},
    ],
)
def test_what_means_nothing_is_refused(part: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(AnyAvailability).validate_python(part)


def test_unknown_names_and_numbers_are_refused() -> None:
    links = ring(AGENTS)
    for kind, message in (
        (Renewal(up=1.0, down={"nobody": 2.0}), "no agent or group"),
        (Renewal(up=1.0, down={"x": 2.0}), "has no value"),
        (Bernoulli(drop=1.0), "agent a0 has 1, and must be below 1"),
        (Bernoulli(participation=1e-20), "participation: agent a0 has so small a number"),
        (Renewal(up=1.0, down=float("inf")), "finite"),
    ):
        with pytest.raises(MeaningError, match=message):
            kind.shares(MEMBERS, links)
    nameless = Members.unnamed(AGENTS)
    with pytest.raises(MeaningError, match="needs groups"):
        Outage(up=1.0, down=1.0).shares(nameless, links)
    with pytest.raises(MeaningError, match="records of the agents is not known"):
        Remove(by="records", share=0.5).shares(nameless, links)


class TestShares:
    def test_each_kind_says_what_it_is_set_to(self) -> None:
        links = ring(AGENTS)
        for kind in (
            Bernoulli(participation=0.3),
            Renewal(up=2.0, participation=0.3),
            Outage(up=2.0, participation=0.3),
            Diurnal(period=5.0, participation=0.3),
        ):
            assert kind.shares(MEMBERS, links) == pytest.approx(0.3)
        assert Always().shares(MEMBERS, links) == pytest.approx(1)
        assert Renewal(up=5.0, down={"x": 20.0, "y": 0.5, "z": 5.0}).shares(MEMBERS, links) == pytest.approx(
            [0.2, 0.2, 10 / 11, 10 / 11, 10 / 11, 0.5]
        )
        both = AllOf(parts=(Bernoulli(drop=0.5), Renewal(up=1.0, down=3.0)))
        assert both.shares(MEMBERS, links) == pytest.approx(0.125)
        assert np.isnan(Leave(after=1.0).shares(MEMBERS, links)).all()

    @given(st.floats(0.02, 0.98), st.floats(-3, 3), st.sampled_from(["records", "label"]))
    def test_dependence_keeps_the_mean_and_orders_agents(
        self, away: float, strength: float, on: Literal["records", "label"]
    ) -> None:
        shares = np.full(AGENTS, away)
        changed = tilted(shares, Depends(on=on, strength=strength), MEMBERS, ring(AGENTS))
        assert changed.mean() == pytest.approx(away, rel=1e-9)
        assert ((changed > 0) & (changed < 1)).all()
        order = np.diff(changed) * np.sign(strength)
        assert (order >= -1e-12).all()  # records and labels rise with the index

    def test_dependence_on_what_is_alike_changes_nothing(self) -> None:
        shares = np.full(AGENTS, 0.4)
        assert tilted(shares, Depends(on="degree"), MEMBERS, ring(AGENTS)) == pytest.approx(0.4)
