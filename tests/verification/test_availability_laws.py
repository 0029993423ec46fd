"""Who is there, and who is served, against what renewal and queueing theory say.

Each test compares a mean with its value in theory and allows 4.5 standard errors, which a normal law exceeds in 7 of a
million cases, or a distribution at a level of 1e-5. There are 19 comparisons, so a change of seeds raises a false alarm
with a probability of about 2e-4; those of both engines are of the same events. The seeds are fixed.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from p2psim.core.distributions import Distribution
from p2psim.core.events import BUSY, COMMIT, JOIN, LEARNER, LEAVE, OK, QUEUED, SEND, WAKE
from p2psim.core.randomness import Rewound, Streams, stream_key
from p2psim.network.availability import Bernoulli, Diurnal, Renewal
from p2psim.network.availability.renewal import (
    ConstantSpans,
    ExponentialSpans,
    LognormalSpans,
    RenewalTurns,
    SpanDistribution,
    WeibullSpans,
)
from p2psim.network.exchanges import Broadcast, Request
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Complete, Star, draw_links

pytestmark = pytest.mark.verification

LAWS: dict[str, SpanDistribution] = {
    "exponential": ExponentialSpans(),
    "lognormal": LognormalSpans(sigma=1.2),
    "weibull": WeibullSpans(shape=0.6),
    "constant": ConstantSpans(),
}
MANY = 3000
ON_BOTH = pytest.mark.parametrize("engine", ["array", "simpy"])


def star(owners: int) -> Graph:
    return draw_links(Star(), TopologyInputs(owners), learner=True)


def of_kind(events: np.ndarray, kind: int) -> np.ndarray:
    return events[events["kind"] == kind]


def near(values: np.ndarray, expected: float) -> None:
    error = values.std(ddof=1) / math.sqrt(values.size)
    assert abs(values.mean() - expected) < 4.5 * error


@pytest.mark.parametrize("law", LAWS)
def test_share_of_time_is_that_of_the_means_from_the_start_on(law: str) -> None:
    """At any fixed time an agent is there with probability up/(up + down)."""
    up, down = 2.0, 5.0
    at = np.array([0.0, 0.7, 3.0, 11.0])
    there = np.empty((MANY, at.size))
    for i in range(MANY):
        process = RenewalTurns(Rewound(stream_key(i, 0, "availability")), 0, up, down, LAWS[law], LAWS[law])
        turns = []
        for turn in process:
            turns.append(turn)
            if turn > at[-1]:
                break
        there[i] = (np.searchsorted(turns, at, side="right") % 2 == 0) == process.begins
    for column in there.T:
        near(column, up / (up + down))


@pytest.mark.parametrize("law", LAWS)
def test_residual_times_have_the_law_of_equilibrium(law: str) -> None:
    """P(residual ≤ x) = ∫₀ˣ (1 − F)/mean (Cox 1962): the integral is done numerically, from SciPy's own laws."""
    mean = 3.0
    own = LAWS[law]
    survival = {
        "exponential": stats.expon(scale=mean).sf,
        "lognormal": stats.lognorm(1.2, scale=mean * math.exp(-(1.2**2) / 2)).sf,
        "weibull": stats.weibull_min(0.6, scale=mean / math.gamma(1 + 1 / 0.6)).sf,
        "constant": lambda x: np.asarray(x < mean, dtype=float),
    }[law]
    random = np.random.default_rng(5)
    residuals = np.sort([own.residual(mean, random) for _ in range(MANY)])
    grid = np.concatenate([[0.0], residuals])
    pieces = [integrate.quad(survival, a, b)[0] / mean for a, b in itertools.pairwise(grid)]
    cumulated = np.cumsum(pieces)
    distance = max(
        np.abs(cumulated - np.arange(1, MANY + 1) / MANY).max(),
        np.abs(cumulated - np.arange(MANY) / MANY).max(),
    )
    assert stats.kstwobign.sf(distance * math.sqrt(MANY)) > 1e-5


@ON_BOTH
def test_events_show_the_same_shares(engine: str) -> None:
    """Time between joins and leaves in the stream of events, agents in parallel."""
    agents, time = 400, 200.0
    network = Network(
        star(agents), Request(), availability=Renewal(up=3.0, down=1.0, down_law=WeibullSpans())
    )
    events = simulate_events(network, Streams(3), time=time, engine=engine).read()
    shares = np.empty(agents)
    for agent in range(agents):
        turns = events[(events["agent"] == agent) & np.isin(events["kind"], (JOIN, LEAVE))]
        edges = np.concatenate([[0.0], turns["time"], [time]])
        up_first = not (turns.size and turns["kind"][0] == JOIN)
        if turns.size and turns["time"][0] == 0.0:  # away from the start on
            edges, up_first = edges[1:], False
        shares[agent] = np.diff(edges)[0 if up_first else 1 :: 2].sum() / time
    near(shares, 0.75)


@ON_BOTH
def test_wakes_under_bernoulli_drop_are_a_thinned_poisson_process(engine: str) -> None:
    agents, time, drop = 300, 40.0, 0.7
    links = star(agents)
    events = simulate_events(
        Network(links, Request(), availability=Bernoulli(drop=drop)), Streams(4), time=time, engine=engine
    ).read()
    counts = np.bincount(of_kind(events, WAKE)["agent"], minlength=agents)
    near(counts.astype(float), (1 - drop) * time)
    dispersion = counts.var(ddof=1) / counts.mean() * (agents - 1)
    assert 1e-5 < stats.chi2.cdf(dispersion, agents - 1) < 1 - 1e-5
    gaps = np.diff(of_kind(events, WAKE)["time"])
    assert stats.kstest(gaps, stats.expon(scale=1 / (agents * (1 - drop))).cdf).pvalue > 1e-5


@ON_BOTH
def test_days_give_their_share_of_wakes(engine: str) -> None:
    agents, time = 300, 50.0
    events = simulate_events(
        Network(star(agents), Request(), availability=Diurnal(period=5.0, participation=0.3)),
        Streams(5),
        time=time,
        engine=engine,
    ).read()
    counts = np.bincount(of_kind(events, WAKE)["agent"], minlength=agents)
    near(counts.astype(float), 0.3 * time)


@ON_BOTH
@pytest.mark.parametrize("clock", ["runs", "stops"])
@pytest.mark.parametrize("law", ["exponential", "constant"])
def test_blocking_of_a_busy_learner(law: str, clock: str, engine: str) -> None:
    """a/(1 + a) of the ticks are refused, whatever the law of the service.

    a = N·E[S] if the ticks of the owner that is served count, (N − 1)·E[S] if they do not.
    """
    owners, service = 5, 0.3
    how = Request(
        service=Distribution(exponential=service) if law == "exponential" else service,
        served_clock="runs" if clock == "runs" else "stops",
    )
    shares = []
    for seed in range(40):
        events = simulate_events(Network(star(owners), how), Streams(seed), time=300.0, engine=engine).read()
        wakes = of_kind(events, WAKE)
        shares.append((wakes["outcome"] == BUSY).mean())
    a = (owners if clock == "runs" else owners - 1) * service
    # A ratio of means over a finite time is biased by less than a thousandth of its error here.
    near(np.array(shares), a / (1 + a))


@ON_BOTH
def test_waiting_in_line_is_that_of_one_server(engine: str) -> None:
    """M/M/1: the mean wait of those who ask is ρ/(μ − λ)."""
    owners, service = 4, 0.15
    load, mu = owners * service, 1 / service
    means = []
    for seed in range(60):
        network = Network(star(owners), Request(service=Distribution(exponential=service), busy="queue"))
        events = simulate_events(network, Streams(seed), time=400.0, engine=engine).read()
        wakes = of_kind(events, WAKE)
        assert set(wakes["outcome"]) <= {OK, QUEUED}
        queries = events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]
        waits = queries["time"] - events["time"][queries["cause"]]
        late = events["time"][queries["cause"]] > 50.0  # the line is empty at first
        means.append(waits[late].mean())
    near(np.array(means), load / (mu - owners))


@ON_BOTH
def test_an_owner_that_is_away_spends_nothing(engine: str) -> None:
    network = Network(star(8), Request(), availability=Renewal(up=1.0, down=3.0))
    events = simulate_events(network, Streams(6), time=300.0, engine=engine).read()
    away: set[int] = set()
    for kind, agent, release in zip(events["kind"], events["agent"], events["release"], strict=True):
        if kind == LEAVE:
            away.add(int(agent))
        elif kind == JOIN:
            away.discard(int(agent))
        elif kind == SEND and release >= 0:
            assert int(agent) not in away
    assert len(of_kind(events, COMMIT)) > 300


@ON_BOTH
def test_broadcast_is_thinned_too(engine: str) -> None:
    agents, time = 40, 60.0
    links = draw_links(Complete(), TopologyInputs(agents))
    events = simulate_events(
        Network(links, Broadcast(), availability=Bernoulli(participation=0.25)),
        Streams(7),
        time=time,
        engine=engine,
    ).read()
    counts = np.bincount(of_kind(events, COMMIT)["agent"], minlength=agents)
    near(counts.astype(float), 0.25 * time)
