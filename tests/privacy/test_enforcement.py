"""Whole runs under every accountant: budgets hold, ledgers add up, and plain recomputation agrees."""

import math
from dataclasses import replace

import numpy as np
import pytest
from graph_cases import graph_scenario
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from star_cases import scenario

from p2psim.core.errors import MeaningError
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import GAUSSIAN, LAPLACE
from p2psim.privacy.ledger import Caveats, ledger, real_charges
from p2psim.privacy.plan import Claims
from p2psim.privacy.releases import Violations
from p2psim.privacy.shares import Releases
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.replay import RecordedReplica
from p2psim.simulation.outcome import streams_of
from p2psim.simulation.recorder import marks_of_run
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

DELTA = 1e-5
GAUSSIAN_NOISE = {"privacy.mechanism": "gaussian", "privacy.delta": DELTA, "privacy.accountant": "gaussian"}
L2 = {"kind": "clip", "norm": "l2", "bound": 1.0}
GRID = {"kind": "discrete-laplace", "grid": 0.02}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("workspace"))


def mu_of(epsilon):
    """μ with Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) = δ (Balle and Wang 2018)."""

    def excess(mu):
        Phi = stats.norm.cdf
        return Phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * Phi(-mu / 2 - epsilon / mu) - DELTA

    return brentq(excess, 1e-3, 50.0, xtol=1e-12)


EXCHANGES = [
    {"kind": "request"},
    {"kind": "request", "service": 0.3, "busy": "queue"},
    {"kind": "poll", "interval": 1.0, "response": {"exponential": 0.4}},
]
ALLOCATIONS = [
    {"kind": "constant", "loss": 0.4},
    {"kind": "list", "losses": [0.4, 0.2, 0.2, 0.9, 0.4, 0.9, 0.4, 0.4]},
    {"kind": "cap", "releases": 6},
    {"kind": "geometric", "ratio": 0.7},
]
NOISES = [
    ({"privacy.mechanism": "laplace"}, ("basic", "kov", "rdp", "pld")),
    ({"privacy.mechanism": GRID}, ("basic", "kov", "rdp", "pld")),
    ({"privacy.mechanism": "gaussian", "privacy.sensitivity": L2}, ("gaussian", "zcdp", "pld")),
]


@settings(max_examples=10, deadline=None)
@given(
    noise=st.sampled_from(NOISES),
    which=st.integers(0, 3),
    exchange=st.sampled_from(EXCHANGES),
    lost=st.sampled_from([0.0, 0.4]),
    absent=st.booleans(),
    allocation=st.sampled_from(ALLOCATIONS),
    seed=st.integers(0, 10**6),
)
def test_no_interleaving_exceeds_a_budget(workspace, noise, which, exchange, lost, absent, allocation, seed):
    changes, accountants = noise
    enforce = accountants[which % len(accountants)]
    one = scenario(
        {
            **changes,
            "seed": seed,
            "network.exchange": exchange,
            "network.channel": {"loss": lost, "latency": 0.05},
            "network.availability": {"kind": "renewal", "up": 3.0, "down": 1.0} if absent else "always",
            "privacy.allocation": allocation,
            "privacy.epsilon": {0: 2.0, 1: 3.0, 2: 9.0},
            "privacy.delta": DELTA,
            "privacy.accountant": [enforce],
        }
    )
    book = simulate(one, 0, workspace, check_events=True).ledger
    assert (book[f"epsilon_{enforce}"] <= book["budget"] * (1 + 1e-9)).all()
    assert not book["over_budget"].any()
    assert not book["not_private"].any()
    np.testing.assert_array_equal(book[f"delta_{enforce}"], DELTA if enforce != "basic" else 0.0)


@pytest.mark.parametrize("enforce", ["basic", "kov", "rdp", "zcdp", "pld", "best"])
def test_who_enforces_says_when_releases_end_and_the_others_report(workspace, enforce):
    """Whatever the network does with them, an owner makes releases of loss .05 for as long as they fit, and no more."""
    one = scenario(
        {
            "learning.algorithm.horizon": 600,
            "privacy.allocation": {"kind": "constant", "loss": 0.05},
            "privacy.epsilon": {0: 0.5, 1: 1.0, 2: 1.2},
            "privacy.delta": DELTA,
            "privacy.accountant": ["basic", "rdp"],
            "privacy.enforce": enforce,
        }
    )
    outcome = simulate(one, 0, workspace)
    assert outcome.ended == "exhausted"
    accountant = ACCOUNTANTS[enforce]
    for made, budget in zip(outcome.ledger["releases"], (0.5, 1.0, 1.2), strict=True):
        told = [
            accountant.epsilon(Charges.of(LAPLACE, np.full(made + more, 0.05)), DELTA)[0] for more in (0, 1)
        ]
        assert told[0] <= budget < told[1]
    np.testing.assert_allclose(outcome.ledger["epsilon_basic"], 0.05 * outcome.ledger["releases"], rtol=1e-12)
    assert not outcome.ledger["over_budget"].any()  # by who enforces, whatever the others say
    assert "epsilon_kov" not in outcome.ledger


def test_an_owner_that_may_release_nothing_is_told_of(workspace):
    one = scenario(
        {"privacy.allocation": {"kind": "constant", "loss": 3.0}, "privacy.epsilon": {0: 9.0, 1: 2.0, 2: 9.0}}
    )
    with pytest.raises(
        MeaningError, match="allocation: the first release of agent 1 would exceed its budget, ε = 2"
    ):
        simulate(one, 0, workspace)
    # On a graph it can go on without its data.
    stated = {"privacy.allocation": {"kind": "constant", "loss": 30.0}, "privacy.epsilon": 20.0}
    assert not simulate(graph_scenario(stated), 0, workspace).ledger["releases"].any()


def test_budgets_stay_each_agents_own(workspace):
    changes = {"privacy.allocation": {"kind": "constant", "loss": 0.3}, "privacy.accountant": ["kov", "pld"]}
    books = [
        simulate(
            scenario({**changes, "privacy.delta": DELTA, "privacy.epsilon": budget}), 0, workspace
        ).ledger
        for budget in ({0: 1.0, 1: 2.0, 2: 3.0}, {0: 1.0, 1: 2.0, 2: 0.6})
    ]
    assert books[0]["releases"][2] > books[1]["releases"][2] == 2
    for column in ("releases", "budget", "epsilon_claimed", "epsilon_kov", "epsilon_pld"):
        assert books[0][column][:2].tolist() == books[1][column][:2].tolist(), column


class TestLedger:
    """Of a plan's releases, in one stream or in parts."""

    @pytest.fixture(scope="class")
    def plan(self, workspace):
        one = scenario({"privacy.allocation": {"kind": "cap", "releases": 40}, "privacy.delta": DELTA})
        return adapter_of(one).cell(one, workspace.case(one, 0), 0).setup.plan

    @staticmethod
    def of(plan, releases, accountants=("basic", "kov", "pld")):
        none, caveats = np.zeros(plan.budget.size, np.int64), Caveats(Violations.none(plan.budget.size))
        return ledger(plan, none, none, releases, None, accountants, caveats)

    @settings(max_examples=20, deadline=None)
    @given(who=st.lists(st.integers(0, 2), max_size=60), split=st.integers(0, 60))
    def test_a_stream_costs_what_its_parts_cost_together(self, plan, who, split):
        agents = np.array(who, np.int64)
        numbers = np.array([who[:k].count(agent) for k, agent in enumerate(who)], np.int64)
        whole = Releases(agents, numbers, np.arange(agents.size))
        parts = [
            Releases(agents[rows], numbers[rows], whole.steps[rows])
            for rows in (slice(None, split), slice(split, None))
        ]
        together, apart = self.of(plan, whole, ["basic"]), [self.of(plan, part, ["basic"]) for part in parts]
        for column in ("releases", "epsilon_claimed", "epsilon_basic"):
            np.testing.assert_allclose(together[column], apart[0][column] + apart[1][column], rtol=1e-12)

    def test_reading_twice_says_the_same_and_changes_nothing(self, plan):
        releases = Releases(np.array([0, 2, 0, 1]), np.array([0, 0, 1, 0]), np.arange(4))
        before = [array.copy() for array in (releases.agents, releases.numbers, plan.limit.epsilon)]
        first, second = self.of(plan, releases), self.of(plan, releases)
        for column, values in first.items():
            np.testing.assert_array_equal(values, second[column])
        for was, now in zip(before, (releases.agents, releases.numbers, plan.limit.epsilon), strict=True):
            np.testing.assert_array_equal(was, now)

    @pytest.mark.parametrize(
        "allocation",
        [
            {"kind": "horizon"},
            {"kind": "cap", "releases": 40},
            {"kind": "cap", "releases": 40, "compose": "kov"},
            {"kind": "constant", "loss": 0.01},
            {"kind": "geometric"},
        ],
        ids=lambda allocation: "-".join(str(value) for value in allocation.values()),
    )
    @settings(max_examples=25, deadline=None)
    @given(who=st.lists(st.integers(0, 2), max_size=40))
    def test_releases_cost_what_they_cost_one_by_one(self, workspace, allocation, who):
        """However a ledger puts equal releases together: each is charged here as the plan says, by itself."""
        enforce = allocation.get("compose", "basic")
        one = scenario({"privacy.allocation": allocation, "privacy.delta": DELTA, "privacy.enforce": enforce})
        plan = adapter_of(one).cell(one, workspace.case(one, 0), 0).setup.plan
        agents = np.array(sorted(who), np.int64)
        numbers = np.array([k - agents.tolist().index(agent) for k, agent in enumerate(agents)], np.int64)
        releases = Releases(agents, numbers, np.arange(agents.size))
        found = self.of(plan, releases)
        each = [
            plan.claimed(Releases(*(np.array([value]) for value in one)))
            for one in zip(agents, numbers, numbers, strict=True)
        ]
        losses = np.concatenate([np.empty(0), *each])
        for agent in range(3):
            own = Charges.of(LAPLACE, losses[agents == agent])
            for name in ("basic", "kov", "pld"):
                expected = ACCOUNTANTS[name].epsilon(own, DELTA if name != "basic" else 0.0)[0]
                assert found[f"epsilon_{name}"][agent] == pytest.approx(expected, rel=1e-12), name
            assert found["releases"][agent] == who.count(agent)

    def test_a_broken_bound_voids_its_agent_alone(self, plan):
        releases = Releases(np.array([0, 1, 2]), np.zeros(3, np.int64), np.arange(3))
        broken = Violations.none(3)._replace(counts=np.array([0, 2, 0]))
        losses = real_charges(plan, Claims.of(plan, releases, None), Caveats(broken)).loss
        assert np.isinf(losses).tolist() == [False, True, False]

    @settings(max_examples=40, deadline=None)
    @given(
        who=st.lists(st.integers(0, 2), max_size=20),
        broken=st.lists(st.booleans(), min_size=3, max_size=3),
        void=st.booleans(),
        holders=st.integers(1, 3),
        scaled=st.sampled_from([1.0, 4.0]),
        starts=st.none() | st.just(np.array([0.1, 0.0, 2.0])),
    )
    def test_nothing_guaranteed_costs_everything_and_everyone_who_shares_it(
        self, plan, who, broken, void, holders, scaled, starts
    ):
        """ε of each agent's releases and start, infinite where its bound is broken; then of a record of several."""
        limit = replace(plan.limit, holders=holders, start=starts, start_real=starts)
        plan = replace(plan, limit=limit, scale_records=scaled)
        agents = np.array(sorted(who), np.int64)
        numbers = np.array([k - agents.tolist().index(agent) for k, agent in enumerate(agents)], np.int64)
        releases = Releases(agents, numbers, np.arange(agents.size))
        found = Violations.none(3)._replace(counts=np.array(broken, np.int64))
        none = np.zeros(3, np.int64)
        book = ledger(plan, none, none, releases, None, ("basic", "kov"), Caveats(found, void))
        losses = plan.claimed(releases) * plan.stretch[agents]
        for name in ("basic", "kov"):
            alone = []
            for agent in range(3):
                own = losses[agents == agent].tolist() + ([] if starts is None else [starts[agent]])
                spent = ACCOUNTANTS[name].epsilon(Charges.of(LAPLACE, own), DELTA)[0]
                alone.append(np.inf if own and (broken[agent] or void) else spent)
            others = [sorted(alone[:i] + alone[i + 1 :], reverse=True)[: holders - 1] for i in range(3)]
            expected = [own + sum(more) for own, more in zip(alone, others, strict=True)]
            np.testing.assert_allclose(book[f"epsilon_{name}"], expected, rtol=1e-12)


class TestGaussian:
    def test_noise_of_a_star_has_its_law(self, workspace):
        """Kolmogorov-Smirnov at 1e-4 an owner: m = 300 releases within ε share μ̄² equally, s = 2Ξ/(n·μ)."""
        one = scenario(
            {
                **GAUSSIAN_NOISE,
                "privacy.sensitivity": L2,
                "privacy.epsilon": 20.0,
                "privacy.allocation": {"kind": "cap", "releases": 300},
                "learning.algorithm.horizon": 800,
            }
        )
        outcome = simulate(one, 0, workspace)
        rows = np.split(outcome.noise, np.cumsum(outcome.ledger["releases"])[:-1])
        for noise, n, made in zip(rows, (40, 60, 100), outcome.ledger["releases"], strict=True):
            mu = mu_of(20.0)
            scale = 2.0 / n / (mu / math.sqrt(300))
            assert made > 150
            assert stats.kstest(noise.ravel() / scale, "norm").pvalue > 1e-4
            assert noise.std() == pytest.approx(scale, rel=5 / math.sqrt(2 * noise.size))
        spent = [
            ACCOUNTANTS["gaussian"].epsilon(Charges.of(GAUSSIAN, np.full(made, mu / math.sqrt(300))), DELTA)[
                0
            ]
            for made in outcome.ledger["releases"]
        ]
        np.testing.assert_allclose(outcome.ledger["epsilon_gaussian"], spent, rtol=1e-3)

    def test_public_bounds_are_those_of_the_euclidean_norm(self, workspace):
        """x in the L1 ball of radius 1, so in that of L2, and |y| ≤ 1: slopes up to 2(3·1 + 1), gradients up to 8."""
        scale = {"x": {"at": 0.2}, "y": {"center": True}}
        changes = {
            **GAUSSIAN_NOISE,
            "privacy.epsilon": 5.0,
            "data.public": {"last": 100},
            "data.scale": scale,
            "privacy.sensitivity": "bounds",
        }
        outcome = simulate(scenario(changes), 0, workspace)
        declared = {**changes, "privacy.sensitivity": {"kind": "declared", "bound": 8.0}}
        assert simulate(scenario(declared), 0, workspace).noise.tobytes() == outcome.noise.tobytes()
        assert not outcome.ledger["bound_violated"].any()

    def test_a_declared_bound_is_checked_in_its_norm(self, workspace):
        """Between the largest L2 and the largest L1 norm of a gradient it holds for Gaussian noise, not for Laplace."""
        changes = {"privacy.epsilon": 1e9, "learning.algorithm.rho": 1e-9}  # the model stays at zero
        one = scenario(changes)
        problem = adapter_of(one).cell(one, workspace.case(one, 0), 0).problem
        gradients = 2 * problem.y[:, None] * problem.X
        l1, l2 = np.abs(gradients).sum(axis=1).max(), np.linalg.norm(gradients, axis=1).max()
        declared = {"kind": "declared", "bound": float((l1 + l2) / 2)}
        books = [
            simulate(scenario({**changes, **noise, "privacy.sensitivity": declared}), 0, workspace).ledger
            for noise in ({}, GAUSSIAN_NOISE)
        ]
        assert books[0]["bound_violated"].any()
        assert not books[1]["bound_violated"].any()
        assert max(books[0]["violation_size"]) == pytest.approx(l1 / ((l1 + l2) / 2), rel=1e-4)

    def test_a_private_start_is_one_more_release(self, workspace):
        """μ² of the start and of the releases add up to what ε at δ is worth."""
        one = graph_scenario(
            {
                **GAUSSIAN_NOISE,
                "privacy.epsilon": 3.0,
                "learning.algorithm.start": {"kind": "private", "epsilon": 1.0, "propagate": False},
                "learning.algorithm.updates_per_agent": 20,
            }
        )
        outcome = simulate(one, 0, workspace)
        assert (outcome.ledger["releases"] == 5).all()  # the start and four more
        np.testing.assert_allclose(outcome.ledger["epsilon_gaussian"], 3.0, rtol=1e-6)
        # The start's noise beside the local minimisers: s = 2·G₂/(m·2λ)/μ = 1/μ for λ = 1/m and G₂ = 1.
        none = {
            "privacy.mechanism": "none",
            "privacy.accountant": "basic",
            "learning.algorithm.start": "local",
        }
        alone = simulate(graph_scenario(none), 0, workspace).models[0]
        mu = mu_of(1.0)
        # A chi-square of 27 normal numbers; at 1e-4.
        assert 1e-4 < stats.chi2.cdf(np.sum((outcome.models[0] - alone) ** 2) * mu**2, 27) < 1 - 1e-4


RECOMPUTED = {
    "star, gaussian": scenario({**GAUSSIAN_NOISE, "privacy.sensitivity": {**L2, "bound": 0.5}}),
    "star, on a grid": scenario({"privacy.mechanism": GRID}),
    "graph, gaussian": graph_scenario({**GAUSSIAN_NOISE, "privacy.sensitivity": {**L2, "bound": 0.2}}),
    "graph, on a grid": graph_scenario({"privacy.mechanism": GRID}),
    "links that wake, on a grid": graph_scenario(
        {
            "privacy.mechanism": GRID,
            "learning.algorithm": {"kind": "gossip-admm", "mu": 0.5, "rho": 1.0, "inner": 1, "commits": 40},
            "network.exchange": {"kind": "gossip", "mode": "edge"},
        }
    ),
    "graph, a start on a grid": graph_scenario(
        {"privacy.mechanism": GRID, "learning.algorithm.start": {"kind": "private", "epsilon": 2.0}}
    ),
}


@pytest.mark.parametrize("one", RECOMPUTED.values(), ids=RECOMPUTED)
def test_plain_recomputation_agrees(workspace, one):
    outcome = simulate(one, 0, workspace)
    case = workspace.case(one, 0)
    cell = adapter_of(one).cell(one, case, 0)
    marks = marks_of_run(one.record.every, outcome.events, cell.setup.time)
    recorded = streams_of(one, 0), outcome.events, outcome.noise, marks, outcome.series, outcome.models
    compared = list(cell.verify(RecordedReplica(*recorded)))
    assert compared
    for pair in compared:
        assert pair.difference <= 1e-11
