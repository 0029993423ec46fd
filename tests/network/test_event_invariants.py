"""``verify`` accepts every stream that the engines make, and refuses each way of breaking one."""

from collections.abc import Callable

import numpy as np
import pytest
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
    Graph,
    Poll,
    Request,
    Round,
    complete,
    glue,
    is_edge,
    play,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.events import (
    BUSY,
    EVENT,
    JOIN,
    LEAVE,
    LOSS,
    NEIGHBOURS,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    QUEUED,
    SPENT,
    SUPERSEDED,
)
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.verify import EventChecker, EventsError, verify

EXCHANGES: dict[str, tuple[Graph, Exchange]] = {
    "request": (star(4), Request()),
    "request, refused": (star(4), Request(service=0.3)),
    "request, queued": (star(4), Request(service=Distribution(exponential=0.2), busy="queue")),
    "poll": (star(4), Poll()),
    "poll, late": (star(4), Poll(interval=0.5, response=Distribution(exponential=0.5))),
    "poll, one owner": (star(1), Poll()),
    "round": (star(4), Round()),
    "round, late": (star(4), Round(response=Distribution(exponential=0.5), deadline=0.7)),
    "broadcast": (complete(4), Broadcast()),
    "gossip": (ring(5), Gossip()),
    "tell": (ring(5), Gossip()),
    "pull": (ring(5), Gossip(mode="pull", partner="weight")),
    "push-pull": (ring(5), Gossip(mode="push-pull")),
    "edge": (ring(5), Gossip(mode="edge")),
}
#: What updates on hearing; everything else updates on waking.
HEARS = {"tell"}
LATENCIES = {
    "at once": 0.0,
    "constant": 0.3,
    "uniform": Distribution(uniform=(0.0, 2.0)),
    "exponential": Distribution(exponential=0.7),
}


class TestEveryStreamHolds:
    @pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
    @pytest.mark.parametrize("latency", LATENCIES)
    @pytest.mark.parametrize("limit", [None, 3])
    @pytest.mark.parametrize("case", EXCHANGES)
    def test_of_simpy(self, case: str, limit: int | None, latency: str, loss: float) -> None:
        where, exchange = EXCHANGES[case]
        limits = None if limit is None else np.full(where.agents, limit)
        events, ended = play(
            where,
            exchange,
            Channel(latency=LATENCIES[latency], loss=loss),
            engine="simpy",
            time=15.0,
            limits=limits,
            updates="hear" if case in HEARS else "wake",
        )
        assert verify([events], where, limits, by_edge=is_edge(exchange)) == events.size > 0
        assert ended in ("time", "exhausted")

    @pytest.mark.parametrize("limit", [0, 2])
    @pytest.mark.parametrize("case", ["broadcast", "gossip", "tell", "pull", "push-pull", "edge"])
    def test_of_agents_that_go_on_without_their_data(self, case: str, limit: int) -> None:
        where, exchange = EXCHANGES[case]
        limits = np.full(where.agents, limit)
        events, ended = play(
            where,
            exchange,
            Channel(latency=0.5, loss=0.2),
            time=15.0,
            limits=limits,
            goes_on=True,
            updates="hear" if case in HEARS else "wake",
        )
        verify([events], where, limits, goes_on=True, by_edge=is_edge(exchange))
        assert ended == "time"
        assert events["release"].max() == limit - 1

    @pytest.mark.parametrize("limit", [None, 3])
    @pytest.mark.parametrize("case", ["request", "broadcast", "gossip", "tell", "pull", "push-pull", "edge"])
    def test_of_the_array_engine(self, case: str, limit: int | None) -> None:
        where, exchange = EXCHANGES[case]
        limits = None if limit is None else np.full(where.agents, limit)
        updates = "hear" if case in HEARS else "wake"
        events, _ = play(where, exchange, engine="array", time=15.0, limits=limits, updates=updates)
        assert verify(np.array_split(events, 7), where, limits, by_edge=is_edge(exchange)) == events.size > 0


def stream(case: str) -> tuple[np.ndarray, Graph, np.ndarray]:
    """A valid stream to be broken, its links, and limits that it just keeps."""
    where, exchange = EXCHANGES[case]
    channel = Channel(latency=0.1, loss=0.2) if case in ("poll, late", "broadcast") else Channel()
    how = {"engine": "simpy", "time": 12.0, "seed": 2, "updates": "hear" if case in HEARS else "wake"}
    free, _ = play(where, exchange, channel, **how)
    made = free[(free["release"] >= 0) & np.isin(free["kind"], [SEND, COMMIT])]
    limits = np.array([made["release"][made["agent"] == i].max() + 1 for i in range(where.agents)])
    events, _ = play(where, exchange, channel, limits=limits, **how)
    return events, where, limits


Mutation = Callable[[np.ndarray], np.ndarray | None]


def nth(events: np.ndarray, kind: int, n: int = 3, **fields: int) -> int:
    """Place of the n-th event of a kind with the given fields."""
    chosen = events["kind"] == kind
    for name, value in fields.items():
        chosen &= events[name] == value
    return int(np.flatnonzero(chosen)[n])


def put(
    kind: int, field: str, value: float | Callable[[np.ndarray], float], n: int = 3, **fields: int
) -> Mutation:
    """Overwrite one field of one event; a function of the event gives its new value."""

    def mutate(events: np.ndarray) -> None:
        event = events[nth(events, kind, n, **fields)]
        event[field] = value(event) if callable(value) else value

    return mutate


def renumber(events: np.ndarray) -> np.ndarray:
    """Number events anew after one was taken out or put in; causes follow."""
    place = {int(seq): new for new, seq in enumerate(events["seq"]) if seq >= 0}
    events["cause"] = [place.get(cause, NONE) for cause in events["cause"].tolist()]
    events["seq"] = np.arange(events.size)
    return events


def without(kind: int, n: int = 3, **fields: int) -> Mutation:
    """Take out one event, so that all numbers still count up."""
    return lambda events: renumber(np.delete(events, nth(events, kind, n, **fields)))


def twice(kind: int, n: int = 3, **fields: int) -> Mutation:
    """Repeat one event right behind itself, numbered as if it were another."""

    def mutate(events: np.ndarray) -> np.ndarray:
        at = nth(events, kind, n, **fields)
        copy = events[at : at + 1].copy()
        copy["seq"] = -1
        return renumber(glue(events[: at + 1], copy, events[at + 1 :]))

    return mutate


def absent(kind: int, n: int = 3, **fields: int) -> Mutation:
    """Let an agent leave just before it does something."""
    return lambda events: inserted(events, nth(events, kind, n, **fields), LEAVE)


def inserted(
    events: np.ndarray, at: int, kind: int, agent: int | None = None, time: float | None = None
) -> np.ndarray:
    """Put in an event that concerns one agent alone."""
    who = int(events["agent"][at]) if agent is None else agent
    when = events["time"][min(at, events.size - 1)] if time is None else time
    new = np.array([(-1, when, NONE, NONE, who, NOBODY, NONE, kind, OK)], EVENT)
    return renumber(glue(events[:at], new, events[at:]))


def last_instant(events: np.ndarray) -> int:
    """Place of the first event of the last instant."""
    return int(np.searchsorted(events["time"], events["time"][-1]))


def away_at_the_deadline(events: np.ndarray) -> np.ndarray:
    """The learner leaves when a round closes because of its deadline, and not of an answer."""
    commits = np.flatnonzero(events["kind"] == COMMIT)
    return inserted(events, int(commits[np.diff(events["time"])[commits - 1] > 0][0]), LEAVE)


def returned(events: np.ndarray, peer: int, version: int) -> np.ndarray:
    """An agent leaves at the end, and comes back with a model."""
    at = last_instant(events)
    there_again = inserted(inserted(events, at, LEAVE, 0), at + 1, JOIN, 0)
    there_again["peer"][at + 1], there_again["version"][at + 1] = peer, version
    return there_again


def leave_twice(events: np.ndarray) -> np.ndarray:
    at = last_instant(events)
    return inserted(inserted(events, at, LEAVE, 0), at + 1, LEAVE, 0)


def commit_of_another_release(events: np.ndarray) -> None:
    """The release exists, but is not the one that the answer carries."""
    release = events["release"]
    later = np.flatnonzero((events["kind"] == COMMIT) & (release >= 1))
    release[later[3]] -= 1


def other_neighbour(event: np.ndarray) -> int:
    """Neighbour on the ring of five that is not the event's peer."""
    return (2 * int(event["agent"]) - int(event["peer"])) % 5


BREAKS: list[tuple[str, str, Mutation, str]] = [
    # (what is broken, in which stream, how, what the error says)
    ("time goes back", "request", put(SEND, "time", lambda e: e["time"] - 1e-9), "time goes back"),
    ("time is NaN", "request", put(SEND, "time", np.nan), "time goes back or is not finite"),
    ("time is infinite", "request", put(SEND, "time", np.inf), "time goes back or is not finite"),
    (
        "the last time is infinite",
        "request",
        lambda events: inserted(events, events.size, LEAVE, 0, np.inf),
        "time goes back or is not finite",
    ),
    ("time is negative", "request", put(WAKE, "time", -0.5, n=0), "time goes back"),
    ("a number is left out", "request", put(DELIVER, "seq", lambda e: e["seq"] + 1), "its number should be"),
    ("a number is repeated", "request", put(DELIVER, "seq", lambda e: e["seq"] - 1), "its number should be"),
    ("unknown kind", "request", put(WAKE, "kind", 9), "unknown kind"),
    ("a beginning", "request", put(WAKE, "kind", 8), "nothing takes time to compute here"),
    ("unknown outcome", "request", put(WAKE, "outcome", 11), "unknown kind or outcome"),
    ("no such agent", "request", put(WAKE, "agent", 4), "no such agent"),
    ("no such agent, below", "request", put(WAKE, "agent", -2), "no such agent"),
    ("a learner where there is none", "broadcast", put(WAKE, "agent", LEARNER), "no such agent"),
    (
        "a cause that comes later",
        "request",
        put(SEND, "cause", lambda e: e["seq"] + 1),
        "does not come before",
    ),
    ("its own cause", "request", put(SEND, "cause", lambda e: e["seq"]), "does not come before"),
    ("a negative cause", "request", put(SEND, "cause", -5), "does not come before"),
    ("wake of the learner", "request", put(WAKE, "agent", LEARNER), "only agents wake"),
    ("wake with a peer", "request", put(WAKE, "peer", LEARNER), "with nobody"),
    ("wake with a release", "request", put(WAKE, "release", 0), "a wake carries"),
    ("wake with a version", "request", put(WAKE, "version", 0), "a wake carries"),
    ("wake with a cause", "request", put(WAKE, "cause", 0), "a wake carries"),
    ("wake that is lost", "request", put(WAKE, "outcome", LOSS), "not that of a wake"),
    ("peer is no neighbour", "gossip", put(SEND, "peer", lambda e: (e["agent"] + 2) % 5), "not linked"),
    ("peer is oneself", "gossip", put(SEND, "peer", lambda e: e["agent"]), "not linked"),
    ("peer does not exist", "request", put(SEND, "peer", 4, agent=LEARNER), "not linked"),
    ("owner sends to owner", "request", put(SEND, "peer", 1, agent=0), "not linked"),
    ("send to nobody", "gossip", put(SEND, "peer", NOBODY), "sent to nobody"),
    ("send of unknown meaning", "gossip", put(SEND, "peer", -9), "sent to nobody"),
    ("send that failed", "gossip", put(SEND, "outcome", LOSS), "a send or a commit is ok"),
    ("send without a cause", "request", put(SEND, "cause", NONE, agent=0), "nothing caused it"),
    (
        "send caused by a refused wake",
        "request, refused",
        put(WAKE, "outcome", BUSY, outcome=OK),
        "cannot cause a send",
    ),
    (
        "query to another than who asked",
        "request",
        put(SEND, "peer", lambda e: (e["peer"] + 1) % 4, agent=LEARNER),
        "a wake of someone else",
    ),
    (
        "query with an old model",
        "request",
        put(SEND, "version", lambda e: e["version"] - 1, agent=LEARNER),
        "learner's model of that moment",
    ),
    (
        "query with a release",
        "request",
        put(SEND, "release", 0, agent=LEARNER),
        "the learner releases nothing",
    ),
    (
        "answer of another owner",
        "request",
        put(SEND, "agent", lambda e: (e["agent"] + 1) % 4, peer=LEARNER),
        "did not happen to its sender",
    ),
    (
        "answer for another model",
        "request",
        put(SEND, "version", lambda e: e["version"] - 1, peer=LEARNER),
        "another version than what caused it",
    ),
    ("two answers to a query", "request", twice(SEND, peer=LEARNER), "has done so"),
    ("two sends of a commit", "gossip", twice(SEND), "has done so"),
    (
        "a commit sent with another version",
        "gossip",
        put(SEND, "version", lambda e: e["version"] + 1),
        "another version than what caused it",
    ),
    (
        "a commit sent with another release",
        "gossip",
        put(SEND, "release", lambda e: e["release"] + 1),
        "release just made",
    ),
    ("delivery without a send", "request", without(SEND, peer=LEARNER), "no message is open"),
    ("delivery of what is no message", "request", put(DELIVER, "cause", 0), "no message is open"),
    ("second delivery of a message", "request", twice(DELIVER), "no message is open"),
    (
        "second delivery of a broadcast",
        "broadcast",
        twice(DELIVER, n=9),
        r"no message is open|has ended there",
    ),
    (
        "delivery to another",
        "request",
        put(DELIVER, "agent", lambda e: (e["agent"] + 1) % 4, peer=LEARNER),
        "not for it",
    ),
    ("delivery to a stranger", "gossip", put(DELIVER, "agent", lambda e: (e["peer"] + 2) % 5), "not linked"),
    (
        "delivery from another",
        "broadcast",
        put(DELIVER, "peer", lambda e: ({0, 1, 2, 3} - {int(e["peer"]), int(e["agent"])}).pop()),
        "was sent by",
    ),
    (
        "delivery of another version",
        "gossip",
        put(DELIVER, "version", lambda e: e["version"] + 1),
        "differ from what was sent",
    ),
    (
        "delivery of another release",
        "gossip",
        put(DELIVER, "release", lambda e: e["release"] + 1),
        "differ from what was sent",
    ),
    ("delivery that failed", "gossip", put(DELIVER, "outcome", LOSS), "not that of a message's end"),
    ("drop that is ok", "broadcast", put(DROP, "outcome", OK), "not that of a message's end"),
    (
        "drop of a message as if it waited",
        "broadcast",
        put(DROP, "outcome", SPENT),
        "not that of a message's end",
    ),
    (
        "drop and delivery of a message",
        "broadcast",
        twice(DROP, n=0),
        r"nothing that can be dropped|has ended there",
    ),
    ("drop of nothing", "poll, late", put(DROP, "cause", NONE, n=0), "nothing that can be dropped"),
    ("superseded twice", "poll, late", twice(DROP, outcome=SUPERSEDED), "nothing that can be dropped"),
    (
        "another's query superseded",
        "poll, late",
        put(DROP, "agent", lambda e: (e["agent"] + 1) % 4, outcome=SUPERSEDED),
        "nothing that can be dropped",
    ),
    (
        "another query superseded",
        "poll, late",
        put(DROP, "version", lambda e: e["version"] + 1, outcome=SUPERSEDED),
        "another query",
    ),
    ("superseded by nobody", "poll, late", put(DROP, "peer", NOBODY, outcome=SUPERSEDED), "another query"),
    (
        "superseded answer that releases",
        "poll, late",
        put(DROP, "release", 0, outcome=SUPERSEDED),
        "releases nothing",
    ),
    (
        "heard query dropped for another reason",
        "poll, late",
        put(DROP, "outcome", SPENT, outcome=SUPERSEDED),
        "superseded, or not answered",
    ),
    ("answer after it was superseded", "poll, late", lambda events: superseded_early(events), "has done so"),
    (
        "commit version skipped",
        "request",
        put(COMMIT, "version", lambda e: e["version"] + 1),
        "its version should be",
    ),
    (
        "commit version repeated",
        "request",
        put(COMMIT, "version", lambda e: e["version"] - 1),
        "its version should be",
    ),
    (
        "agent's version skipped",
        "gossip",
        put(COMMIT, "version", lambda e: e["version"] + 1),
        "its version should be",
    ),
    ("commit left out", "request", without(COMMIT), r"learner's model of that moment|its version should be"),
    ("commit without a cause", "request", put(COMMIT, "cause", NONE), "cannot cause it"),
    (
        "commit caused by the query's delivery",
        "request",
        put(COMMIT, "cause", lambda e: e["cause"] - 2),
        "cannot cause it",
    ),
    (
        "commit of another owner's answer",
        "request",
        put(COMMIT, "peer", lambda e: (e["peer"] + 1) % 4),
        "without an answer of that owner",
    ),
    ("two commits of an answer", "request", lambda events: second_commit(events), "caused another commit"),
    ("commit of another release", "request", commit_of_another_release, "another release than the answer"),
    ("commit that failed", "request", put(COMMIT, "outcome", BUSY), "a send or a commit is ok"),
    ("agent's commit without a wake", "gossip", without(WAKE), "cannot cause it"),
    (
        "agent's commit of a wake of another",
        "gossip",
        put(WAKE, "agent", lambda e: (e["agent"] + 1) % 5),
        "cannot cause it",
    ),
    (
        "agent's commit with someone",
        "gossip",
        put(COMMIT, "peer", lambda e: (e["agent"] + 1) % 5),
        "or with someone",
    ),
    (
        "release skipped",
        "request",
        put(SEND, "release", lambda e: e["release"] + 1, peer=LEARNER),
        "its release should be",
    ),
    (
        "release repeated",
        "request",
        put(SEND, "release", lambda e: e["release"] - 1, peer=LEARNER, n=9),
        "its release should be",
    ),
    (
        "release of a commit skipped",
        "gossip",
        put(COMMIT, "release", lambda e: e["release"] + 1),
        "its release should be",
    ),
    (
        "answer without a release",
        "request",
        put(SEND, "release", NONE, peer=LEARNER),
        "its release should be",
    ),
    ("wake of who is away", "request", absent(WAKE), r"\(wake .*the agent is offline"),
    ("send of who is away", "poll, late", absent(SEND, peer=LEARNER), r"\(send .*the agent is offline"),
    ("commit of who is away", "round, late", away_at_the_deadline, r"\(commit .*the agent is offline"),
    ("delivery to who is away", "poll, late", absent(DELIVER, n=0), r"\(deliver .*the agent is offline"),
    # Nobody leaves between what happens at once.
    ("leave between a wake and its send", "gossip", absent(SEND), "due before other events of that instant"),
    ("leave between a wake and its commit", "gossip", absent(COMMIT), "due before other events"),
    ("leave between a send and its delivery", "gossip", absent(DELIVER), "due before other events"),
    (
        "an agent's second commit of its own commit",
        "gossip",
        lambda events: commit_of_commit(events),
        "without a wake",
    ),
    (
        "agent's commit of a wake that waits",
        "gossip",
        put(WAKE, "outcome", QUEUED),
        "without a wake",
    ),
    ("query caused by a query", "request", lambda events: query_of_query(events), "a wake of someone else"),
    (
        "answer to one's own wake",
        "request",
        lambda events: answer_to_wake(events),
        "did not happen to its sender",
    ),
    ("leaves twice", "request", leave_twice, "only an agent that is online leaves"),
    (
        "the learner acts after it left",
        "request",
        lambda events: inserted(events, 6, LEAVE, LEARNER),
        "the agent is offline",
    ),
    (
        "turned away by a learner that is there",
        "request",
        put(WAKE, "outcome", OFFLINE),
        "the learner is online",
    ),
    (
        "comes back with a model of nobody",
        "request",
        lambda events: returned(events, NOBODY, 3),
        "a model that nobody has",
    ),
    (
        "fetches another model than the learner's",
        "request",
        lambda events: returned(events, LEARNER, 10**6),
        "the model of that moment",
    ),
    (
        "joins without having left",
        "request",
        lambda events: inserted(events, 5, JOIN, 0),
        "was online already",
    ),
    ("told by nobody", "tell", put(SEND, "cause", NONE), "nothing caused it"),
    (
        "told of another's wake",
        "tell",
        put(WAKE, "agent", lambda e: (e["agent"] + 1) % 5),
        "did not happen to",
    ),
    ("told with a release", "tell", put(SEND, "release", 0), "a release that no commit made"),
    ("told another version", "tell", put(SEND, "version", lambda e: e["version"] + 1, n=9), "of that moment"),
    ("told to all", "tell", put(SEND, "peer", NEIGHBOURS), "only a commit is sent to all"),
    ("told twice", "tell", twice(SEND), "has done so"),
    ("told by a wake that waits", "tell", put(WAKE, "outcome", QUEUED), "a wake that waits"),
    ("told by a wake that is spent", "tell", put(WAKE, "outcome", SPENT), "cannot cause a send"),
    ("hears and commits twice", "tell", lambda events: heard_twice(events), "has caused another commit"),
    (
        "commit of a model not heard",
        "tell",
        put(COMMIT, "cause", lambda e: e["cause"] - 1),
        "cannot cause it",
    ),
    ("commit of an older model", "tell", lambda events: heard_before(events), "cannot cause it"),
    (
        "commit of what another heard",
        "tell",
        lambda events: commit_by_sender(events),
        "cannot cause it",
    ),
    (
        "commit with another model",
        "tell",
        put(COMMIT, "peer", other_neighbour),
        "another model than it heard",
    ),
    ("commit with nobody's model", "tell", put(COMMIT, "peer", NOBODY), "another model than it heard"),
    ("commit without a release", "tell", put(COMMIT, "release", NONE), "its release should be"),
    (
        "commit of another's release",
        "tell",
        put(COMMIT, "release", lambda e: e["release"] + 1),
        "its release should",
    ),
    (
        "answer to someone else",
        "pull",
        put(SEND, "peer", other_neighbour, version=0, n=1),
        "answers someone else",
    ),
    (
        "answer by someone else",
        "pull",
        put(DELIVER, "agent", lambda e: (2 * e["peer"] - e["agent"]) % 5, version=NONE),
        "not for it",
    ),
    ("two answers to a question", "pull", twice(SEND, version=0, n=1), "answers twice"),
    ("answer without a model", "pull", put(SEND, "version", NONE, version=0, n=1), "model of that moment"),
    ("answer with an old model", "pull", put(SEND, "version", 0, version=1, n=0), "model of that moment"),
    (
        "answer with a release",
        "pull",
        put(SEND, "release", 0, version=0, n=1),
        "a release that no commit made",
    ),
    ("answer to a wake", "pull", lambda events: answered_wake(events), "has done so"),
    (
        "question with a release",
        "pull",
        put(SEND, "release", 0, version=NONE),
        "a release that no commit made",
    ),
    ("commit with a question", "pull", lambda events: commit_of_question(events), "carries no model"),
    ("question answered later", "pull", lambda events: answered_late(events), "has done so"),
    (
        "answer to an answer",
        "push-pull",
        lambda events: answer_of_answer(events),
        "an answer is not answered",
    ),
    ("answer after the update", "push-pull", lambda events: answer_after_update(events), "after its update"),
    ("local steps without a release", "edge", put(SEND, "release", NONE), "its release should be"),
    (
        "local steps with another release",
        "edge",
        put(SEND, "release", lambda e: e["release"] + 1),
        "its release should",
    ),
    ("local steps without a model", "edge", put(SEND, "version", NONE), "model of that moment"),
    ("link's commit with a release", "edge", put(COMMIT, "release", 0), "go with their sends"),
    (
        "link's commit by the other end",
        "edge",
        lambda events: commit_of_first(events),
        "that of the agent that woke",
    ),
    ("link's commit of a wake", "edge", lambda events: commit_of_wake(events), "caused by an answer"),
    (
        "another dtype",
        "request",
        lambda events: np.concatenate([events, events]),
        "not that of the event format",
    ),
]


def heard_twice(events: np.ndarray) -> np.ndarray:
    """Commit with the same model again, under the next version and release."""
    at = nth(events, COMMIT)
    commit = events[at]
    return put_in(
        events,
        at + 1,
        at,
        cause=commit["cause"],
        version=commit["version"] + 1,
        release=commit["release"] + 1,
    )


def heard_before(events: np.ndarray) -> None:
    """Name as a commit's cause the delivery of the agent's commit before."""
    at = nth(events, COMMIT, 9)
    earlier = np.flatnonzero((events["kind"] == COMMIT) & (events["agent"] == events["agent"][at]))[0]
    assert earlier < at
    events["cause"][at] = events["cause"][earlier]


def commit_by_sender(events: np.ndarray) -> None:
    """Who told its model commits, in place of the one that heard it."""
    commit = events[nth(events, COMMIT, 0)]
    commit["agent"], commit["peer"] = commit["peer"], commit["agent"]


def answered_wake(events: np.ndarray) -> None:
    """Let an answer name the wake as its cause, which has caused the question."""
    at = nth(events, SEND, 1, version=0)
    question = events["cause"][events["cause"][at]]
    events["cause"][at] = events["cause"][question]


def commit_of_question(events: np.ndarray) -> np.ndarray:
    """Who is asked updates, too."""
    at, commit = nth(events, DELIVER, 0, version=NONE), nth(events, COMMIT, 0)
    agent, peer = int(events["agent"][at]), int(events["peer"][at])
    return put_in(events, at + 1, commit, cause=at, agent=agent, peer=peer, version=1, release=0)


def answered_late(events: np.ndarray) -> np.ndarray:
    """The same agent answers the question again, at a later time."""
    at = nth(events, SEND, 0, version=0)
    answer = events[at]
    return put_in(events, at + 7, at, cause=answer["cause"], version=0, agent=answer["agent"])


def answer_of_answer(events: np.ndarray) -> np.ndarray:
    """Who hears an answer sends its model back again."""
    first = nth(events, SEND, 0)
    heard = first + 3  # send, delivery, answer, delivery
    return put_in(events, heard + 1, first, cause=heard)


def answer_after_update(events: np.ndarray) -> np.ndarray:
    """The neighbour updates first, and then sends what it has."""
    first = nth(events, SEND, 0)
    answer, delivery, own, other = events[first + 2 : first + 6].copy()
    assert (answer["kind"], delivery["kind"], own["kind"], other["kind"]) == (SEND, DELIVER, COMMIT, COMMIT)
    answer["version"] = delivery["version"] = other["version"]
    return renumber(
        glue(
            events[: first + 2],
            *(row.reshape(1) for row in (other, answer, delivery, own)),
            events[first + 6 :],
        )
    )


def commit_of_first(events: np.ndarray) -> np.ndarray:
    """Who hears of the woken link commits, in place of the one that woke."""
    at = nth(events, COMMIT, 0)
    commit = events[at]
    first = events["cause"][events["cause"][commit["cause"]]]
    assert events["kind"][first] == DELIVER
    events["cause"][at], events["agent"][at], events["peer"][at] = first, commit["peer"], commit["agent"]
    return events


def commit_of_wake(events: np.ndarray) -> np.ndarray:
    at, commit = nth(events, WAKE, 0), nth(events, COMMIT, 0)
    agent = int(events["agent"][at])
    return put_in(events, at + 1, commit, cause=at, agent=agent, peer=NOBODY, version=1)


def superseded_early(events: np.ndarray) -> np.ndarray:
    """Supersede a query just before its answer is sent."""
    at = nth(events, SEND, peer=LEARNER)
    answer = events[at]
    new = np.array(
        [
            (
                -1,
                answer["time"],
                answer["version"],
                answer["cause"],
                answer["agent"],
                LEARNER,
                NONE,
                DROP,
                SUPERSEDED,
            )
        ],
        EVENT,
    )
    return renumber(glue(events[:at], new, events[at:]))


def second_commit(events: np.ndarray) -> np.ndarray:
    """Commit an answer again, under the next version."""
    changed = twice(COMMIT)(events)
    assert changed is not None
    changed["version"][nth(changed, COMMIT, 4)] += 1
    return changed


def put_in(events: np.ndarray, at: int, like: int, **fields: int) -> np.ndarray:
    """Put in a copy of another event with some fields changed; ``cause`` is a number of before."""
    new = events[like : like + 1].copy()
    for name, value in {**fields, "seq": -1, "time": events["time"][at - 1]}.items():
        new[name] = value
    return renumber(glue(events[:at], new, events[at:]))


def commit_of_commit(events: np.ndarray) -> np.ndarray:
    at = nth(events, COMMIT)
    commit = events[at]
    return put_in(events, at + 1, at, cause=at, version=commit["version"] + 1, release=commit["release"] + 1)


def query_of_query(events: np.ndarray) -> np.ndarray:
    """After an owner has heard a query, another query that names this as its cause."""
    heard = nth(events, DELIVER, peer=LEARNER)
    return put_in(events, heard + 1, int(events["cause"][heard]), cause=heard)


def answer_to_wake(events: np.ndarray) -> np.ndarray:
    """An owner sends to the learner when it wakes, before it was asked."""
    wake = nth(events, WAKE)
    answer = nth(events, SEND, peer=LEARNER)
    agent = events["agent"][wake]
    return put_in(events, wake + 1, answer, cause=wake, agent=agent, version=NONE, release=NONE)


class TestEveryRuleIsChecked:
    @pytest.mark.parametrize(
        ("case", "mutate", "message"), [row[1:] for row in BREAKS], ids=[row[0] for row in BREAKS]
    )
    def test_broken_stream_is_refused(self, case: str, mutate: Mutation, message: str) -> None:
        events, where, limits = stream(case)
        by_edge = is_edge(EXCHANGES[case][1])
        assert verify([events], where, limits, by_edge=by_edge) == events.size
        broken = events.copy()
        changed = mutate(broken)
        broken = broken if changed is None else changed
        assert broken.dtype != events.dtype or broken.tobytes() != events.tobytes()
        with pytest.raises(EventsError, match=message):
            verify([broken], where, limits, by_edge=by_edge)

    def test_edges_are_not_taken_for_another_pattern(self) -> None:
        for case, by_edge in (("edge", False), ("pull", True), ("gossip", True), ("tell", True)):
            events, where, limits = stream(case)
            with pytest.raises(EventsError):
                verify([events], where, limits, by_edge=by_edge)

    @pytest.mark.parametrize("case", ["request", "gossip", "poll, late"])
    @pytest.mark.parametrize("agent", [0, 3])
    def test_release_above_the_limit(self, case: str, agent: int) -> None:
        events, where, limits = stream(case)
        limits[agent] -= 1
        # Under poll, what a spent owner hears no longer counts, so that the stream may break a little earlier.
        what = "" if case == "poll, late" else f"more than {limits[agent]} releases"
        with pytest.raises(EventsError, match=rf"agent {agent} at .*{what}"):
            verify([events], where, limits)

    def test_who_waits_is_turned_away_once(self) -> None:
        limits = np.full(4, 2)
        busy = Request(service=1.0, busy="queue")
        events, _ = play(star(4), busy, engine="simpy", time=30.0, limits=limits)
        turned = np.flatnonzero((events["kind"] == DROP) & (events["outcome"] == SPENT))
        assert turned.size > 1
        verify([events], star(4), limits)
        for field, value in (
            ("peer", LEARNER),
            ("version", 0),
            ("release", 0),
            ("outcome", OFFLINE),
            ("outcome", SUPERSEDED),
            ("cause", 0),
        ):
            broken = events.copy()
            broken[field][turned[0]] = value
            with pytest.raises(EventsError):
                verify([broken], star(4), limits)
        with pytest.raises(EventsError, match="nothing that can be dropped"):
            verify([twice(DROP, n=0)(events.copy())], star(4), limits)  # type: ignore[list-item]
        never_queued = events.copy()
        never_queued["outcome"][events["cause"][turned[0]]] = OK
        with pytest.raises(EventsError, match="only an owner that waits"):
            verify([never_queued], star(4), limits)

    def test_leaving_and_coming_back_is_allowed(self) -> None:
        events, where, limits = stream("request")
        at = nth(events, WAKE)
        there_again = inserted(inserted(events, at, LEAVE), at + 1, JOIN, int(events["agent"][at]))
        assert verify([there_again], where, limits) == events.size + 2

    def test_state_is_kept_between_chunks(self) -> None:
        events, where, limits = stream("request")
        checker = EventChecker(where, limits)
        checker.check(events[:10])
        with pytest.raises(EventsError, match="its number should be 10"):
            checker.check(events[11:])

    @pytest.mark.parametrize("case", EXCHANGES)
    def test_its_memory_does_not_grow(self, case: str) -> None:
        """Open messages and causes are forgotten when they end, dropped ones too."""
        where, exchange = EXCHANGES[case]
        limits = np.full(where.agents, 40)
        channel = Channel(latency=0.1, loss=0.5)
        checker = EventChecker(where, limits, by_edge=is_edge(exchange))
        held = []
        updates = "hear" if case in HEARS else "wake"
        events, _ = play(where, exchange, channel, time=400.0, limits=limits, updates=updates)
        for chunk in np.array_split(events, 10):
            checker.check(chunk)
            seen = checker._state
            held.append(len(seen.open) + len(seen.causes) + len(seen.heard))
        queued = np.count_nonzero((events["kind"] == WAKE) & (events["outcome"] == QUEUED))
        dropped = np.count_nonzero((events["kind"] == DROP) & (events["outcome"] == SPENT))
        waiting = max(0, queued - dropped) if case == "request, queued" else 0
        assert max(held) <= 4 * where.agents + waiting
        assert NEIGHBOURS not in events["agent"]
