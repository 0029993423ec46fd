"""What batches cost: mixtures over all batches, beside what accountants are told; and how releases are counted."""

import itertools
import math

import numpy as np
import pytest
from graph_cases import graph_scenario
from hypothesis import given, settings
from hypothesis import strategies as st
from star_cases import scenario

from p2psim.core.errors import InputError
from p2psim.learning.batches import FixedBatch, PoissonBatch
from p2psim.privacy.accounting.noises import GAUSSIAN, LAPLACE, Subsampled, sampled
from p2psim.privacy.plan import Claims
from p2psim.privacy.shares import Releases
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

#: Numbers on which a density is summed; the error of a hockey-stick divergence is below 1e-5.
GRID = 40_001


def sums_over_batches(batch, gradients):
    """Chance of each batch, and its sum over the divisor."""
    n = len(gradients)
    records = np.array([n])
    rate, divisor = batch.rates(records)[0], batch.divisors(records)[0]
    for size in range(n + 1):
        if isinstance(batch, FixedBatch) and size != batch.size:
            continue
        chance = (
            1 / math.comb(n, size) if isinstance(batch, FixedBatch) else rate**size * (1 - rate) ** (n - size)
        )
        for who in itertools.combinations(range(n), size):
            yield chance, sum(gradients[i] for i in who) / divisor


def released_density(batch, gradients, noise, scale, x):
    """Density of a release of one number: the mixture over all batches."""
    total = np.zeros_like(x)
    for chance, centre in sums_over_batches(batch, gradients):
        z = (x - centre) / scale
        if noise is LAPLACE:
            total += chance * np.exp(-np.abs(z)) / (2 * scale)
        else:
            total += chance * np.exp(-(z**2) / 2) / (scale * math.sqrt(2 * math.pi))
    return total


def divergence(batch, one, other, noise, loss, epsilon, bound=1.0):
    """Hockey-stick divergence of releases whose noise is scaled as plans do, 2Ξ over the divisor by the loss."""
    n = np.array([len(one)])
    scale = 2 * bound / batch.divisors(n)[0] / loss
    far = max(abs(c) for gradients in (one, other) for _, c in sums_over_batches(batch, gradients))
    x = np.linspace(-far - 30 * scale, far + 30 * scale, GRID)
    P, Q = (released_density(batch, gradients, noise, scale, x) for gradients in (one, other))
    return float(np.trapezoid(np.maximum(P - math.exp(epsilon) * Q, 0.0), x))


gradients_ = st.sampled_from([-1.0, 1.0, 0.0]) | st.floats(-1, 1)


@settings(max_examples=150)
@given(
    others=st.lists(gradients_, max_size=4),
    mine=gradients_,
    theirs=gradients_,
    batch=st.builds(PoissonBatch, rate=st.sampled_from([0.05, 0.3, 0.8, 1.0]))
    | st.builds(FixedBatch, size=st.integers(1, 5)),
    noise=st.sampled_from([LAPLACE, GAUSSIAN]),
    loss=st.sampled_from([0.1, 1.0, 3.0]),
    epsilon=st.floats(-1.0, 3.0),
)
def test_no_release_of_a_batch_costs_more_than_is_charged(others, mine, theirs, batch, noise, loss, epsilon):
    """Under replacing one record; at any ε, so that what is composed of it holds too."""
    n = len(others) + 1
    if isinstance(batch, FixedBatch) and batch.size > n:
        batch = FixedBatch(size=n)
    rate = batch.rates(np.array([n]))[0]
    charging = sampled(noise, float(rate), isinstance(batch, PoissonBatch))
    charged = float(charging.delta(np.array([loss]), np.array([epsilon]))[0])
    found = divergence(batch, [*others, mine], [*others, theirs], noise, loss, epsilon)
    assert found <= charged + 1e-5


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=lambda n: n.name)
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 0.6])
def test_a_batch_of_one_among_equals_costs_all_that_is_charged(noise, epsilon):
    """Others who hold what replaces the record make a batch without it the same as one with its replacement."""
    n, loss = 4, 1.5
    charged = float(Subsampled(noise, 1 / n).delta(np.array([loss]), np.array([epsilon]))[0])
    found = divergence(FixedBatch(size=1), [-1.0] * 3 + [1.0], [-1.0] * 4, noise, loss, epsilon)
    assert found == pytest.approx(charged, abs=1e-5)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("loss", [0.3, 2.0, 5.0])
@pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.05, 0.6])
def test_a_poisson_batch_of_a_record_alone_costs_all_that_is_charged(rate, loss, epsilon):
    """Gaussian noise, and a record replaced by its opposite: no less may be charged."""
    charged = float(sampled(GAUSSIAN, rate, poisson=True).delta(np.array([loss]), np.array([epsilon]))[0])
    assert divergence(PoissonBatch(rate=rate), [1.0], [-1.0], GAUSSIAN, loss, epsilon) == pytest.approx(
        charged, abs=1e-5
    )


#: Points in a plane, and the area that belongs to each.
LINE = np.linspace(-9.0, 9.0, 601)
PLANE = np.stack(np.meshgrid(LINE, LINE))
AREA = (LINE[1] - LINE[0]) ** 2


@settings(max_examples=60, deadline=None)
@given(
    norms=st.tuples(st.floats(0, 1) | st.just(1.0), st.floats(0, 1) | st.just(1.0)),
    angle=st.floats(0, 2 * math.pi),
    radius=st.floats(0.2, 2.5),
    rate=st.floats(0.01, 0.95),
    epsilon=st.floats(0, 1.5),
)
def test_no_record_in_a_plane_costs_more_than_opposites_on_a_line(norms, angle, radius, rate, epsilon):
    """The worst pair of Poisson samples under Gaussian noise, in two dimensions: any x and x' of norm at most r."""

    def density(norm, direction):
        centre = radius * norm * np.array([math.cos(direction), math.sin(direction)])
        return np.exp(-((PLANE - centre[:, None, None]) ** 2).sum(axis=0) / 2) / (2 * math.pi)

    with_it = density(norms[0], 0.0), density(norms[1], angle)
    P, Q = ((1 - rate) * density(0.0, 0.0) + rate * one for one in with_it)
    found = float(np.maximum(P - math.exp(epsilon) * Q, 0).sum() * AREA)
    charged = float(
        sampled(GAUSSIAN, rate, poisson=True).delta(np.array([2 * radius]), np.array([epsilon]))[0]
    )
    assert found <= charged + 1e-5


def test_a_visible_absence_costs_more_than_amplification_would_claim():
    """Owners that are sampled for a round, one record replaced, loss 1, q = .01, ε = 3.

    The rule would claim δ = 1.5e-5 at ε' = .175. Who sees that an owner takes part sees its whole release then, and
    nothing else: δ(ε') is q times that of the whole, 3.3e-3.
    """
    q, loss = 0.01, np.array([1.0])
    moved = math.log(1 + q * math.expm1(3.0))
    assert moved == pytest.approx(0.175, abs=5e-4)
    claimed = float(Subsampled(GAUSSIAN, q).delta(loss, np.array([moved]))[0])
    visible = q * float(GAUSSIAN.delta(loss, np.array([moved]))[0])
    assert claimed == pytest.approx(1.5e-5, rel=0.03)
    assert visible == pytest.approx(3.3e-3, rel=0.01)


def with_batch(one: Scenario, batch: dict) -> Scenario:
    tree = one.resolved()
    tree["learning"]["algorithm"]["batch"] = batch
    return Scenario.from_dict(tree)


def plan_of(one, workspace):
    return adapter_of(one).cell(one, workspace.case(one, 0), 0).setup.plan


@pytest.mark.parametrize("build", [scenario, graph_scenario], ids=["star", "graph"])
@pytest.mark.parametrize("batch", [{"kind": "poisson", "rate": 0.2}, {"kind": "fixed", "size": 4}], ids=repr)
def test_a_batch_is_one_release_whatever_its_size(build, batch, tmp_path):
    """As many are counted as with all records, and each costs log(1 + q(e^ε₀ − 1)): the same share of the budget."""
    workspace = Workspace(tmp_path)
    changes = {"privacy.epsilon": 20.0, "privacy.allocation": {"kind": "cap", "releases": 4}}
    whole, part = build(changes), with_batch(build(changes), batch)
    books = [simulate(one, 0, workspace).ledger for one in (whole, part)]
    assert books[0]["releases"].tolist() == books[1]["releases"].tolist()
    np.testing.assert_allclose(books[1]["epsilon_basic"], 20.0 * books[1]["releases"] / 4, rtol=1e-9)
    np.testing.assert_allclose(books[1]["epsilon_basic"], books[0]["epsilon_basic"], rtol=1e-9)


@pytest.mark.parametrize("kind", ["poisson", "fixed"])
def test_noise_is_that_of_the_loss_before_sampling(kind, tmp_path):
    """By hand, for owners of 40, 60 and 100 records: Δ = 2Ξ over the divisor, ε₀ = log(1 + (e^{ε/m} − 1)/q)."""
    batch = {"kind": "poisson", "rate": 0.1} if kind == "poisson" else {"kind": "fixed", "size": 8}
    changes = {
        "privacy.epsilon": 6.0,
        "privacy.allocation": {"kind": "cap", "releases": 4},
        "record.events": True,
    }
    one = with_batch(scenario(changes), batch)
    outcome = simulate(one, 0, Workspace(tmp_path))
    full = simulate(scenario(changes), 0, Workspace(tmp_path))
    n = np.array([40, 60, 100])
    q = np.full(3, 0.1) if kind == "poisson" else 8 / n
    divisor = 0.1 * n if kind == "poisson" else np.full(3, 8)
    before = np.log(1 + (math.exp(6.0 / 4) - 1) / q)
    expected = (2 * 1.0 / divisor / before) / (2 * 1.0 / n / (6.0 / 4))
    ratio = (outcome.noise / full.noise)[:, 0]
    owner = np.repeat(np.arange(3), outcome.ledger["releases"])
    np.testing.assert_allclose(ratio, expected[owner], rtol=1e-9)


def test_a_rate_of_one_is_no_sampling(tmp_path):
    workspace = Workspace(tmp_path)
    whole, all_of_them = (
        simulate(with_batch(scenario(), batch), 0, workspace).ledger
        for batch in ({"kind": "whole"}, {"kind": "poisson", "rate": 1.0})
    )
    for name, column in whole.items():
        assert column.tobytes() == all_of_them[name].tobytes(), name


@pytest.mark.parametrize(
    ("mechanism", "accountant"),
    [
        ("gaussian", "gaussian"),
        ("gaussian", "zcdp"),
        ("gaussian", "rdp"),
        ("laplace", "rdp"),
        ("laplace", "zcdp"),
    ],
)
def test_accountants_that_do_not_know_samples_are_refused(mechanism, accountant):
    changes = {
        "privacy.mechanism": mechanism,
        "privacy.sensitivity": {
            "kind": "clip",
            "norm": "l2" if mechanism == "gaussian" else "l1",
            "bound": 1.0,
        },
        "privacy.delta": 1e-5,
        "privacy.accountant": [accountant],
    }
    scenario(changes)
    with pytest.raises(InputError, match=accountant) as caught:
        with_batch(scenario(changes), {"kind": "poisson", "rate": 0.1})
    assert "pld" in str(caught.value)


@pytest.mark.parametrize("accountant", ["basic", "rdp", "zcdp", "pld"])
def test_a_shuffled_epoch_costs_as_much_as_all_records(accountant, tmp_path):
    """Nothing is claimed for who is in which part of a shuffle: each release costs its whole loss, by any accountant.

    The sum is divided by b: noise is n_i/b times that of the whole, for owners of 40, 60 and 100 records.
    """
    changes = {
        "privacy.epsilon": 6.0,
        "privacy.delta": 1e-5,
        "privacy.accountant": [accountant],
        "privacy.allocation": {"kind": "cap", "releases": 4},
        "record.events": True,
    }
    workspace = Workspace(tmp_path)
    epochs = with_batch(scenario(changes), {"kind": "epochs", "size": 8})
    part, whole = (simulate(one, 0, workspace) for one in (epochs, scenario(changes)))
    np.testing.assert_array_equal(part.ledger[f"epsilon_{accountant}"], whole.ledger[f"epsilon_{accountant}"])
    owner = np.repeat(np.arange(3), part.ledger["releases"])
    np.testing.assert_allclose((part.noise / whole.noise)[:, 0], np.array([5, 7.5, 12.5])[owner], rtol=1e-12)


def test_sampled_owners_are_not_amplified(tmp_path):
    """Who takes part shows in who answers: a release of two owners drawn of four costs what one of all four does."""
    workspace = Workspace(tmp_path)

    def book(asked, commits):
        algorithm = {"kind": "fedavg", "step": 0.1, "commits": commits}
        tree = {
            "name": "sampled",
            "network": {
                "topology": {"kind": "star", "agents": 4},
                "exchange": {"kind": "round", "participants": asked},
            },
            "data": {"source": {"kind": "linear-classification", "points": 20, "dimension": 2}},
            "learning": {"algorithm": algorithm, "loss": "logistic", "regularizer": {"l2": 0.01}},
            "privacy": {
                "mechanism": "gaussian",
                "epsilon": 5.0,
                "delta": 1e-5,
                "accountant": ["rdp"],
                "sensitivity": {"kind": "clip", "norm": "l2", "bound": 1.0},
                "allocation": {"kind": "cap", "releases": 10},
            },
            "record": {"metrics": ["objective"], "every": 10},
        }
        return simulate(Scenario.from_dict(tree), 0, workspace).ledger

    drawn = book(2, 10)
    assert drawn["releases"].sum() == 20
    for count, lost in zip(drawn["releases"].tolist(), drawn["epsilon_rdp"].tolist(), strict=True):
        assert lost == pytest.approx(book(4, count)["epsilon_rdp"][0], rel=1e-12)


def test_a_horizon_of_rounds_is_spent_exactly(tmp_path):
    """Each owner answers every round: in 10 rounds of 2 local steps it makes 20 queries, of a 20th of ε each."""
    tree = {
        "name": "rounds",
        "network": {"topology": {"kind": "star", "agents": 4}, "exchange": "round"},
        "data": {"source": {"kind": "linear-classification", "points": 20, "dimension": 2}},
        "learning": {
            "algorithm": {"kind": "fedavg", "step": 0.1, "local_steps": 2, "commits": 10},
            "loss": "logistic",
            "regularizer": {"l2": 0.01},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": 5.0,
            "sensitivity": {"kind": "clip", "bound": 1.0},
            "allocation": "horizon",
        },
        "record": {"metrics": ["objective"], "every": 10},
    }
    ledger = simulate(Scenario.from_dict(tree), 0, Workspace(tmp_path)).ledger
    assert ledger["releases"].tolist() == [20] * 4
    np.testing.assert_allclose(ledger["epsilon_basic"], 5.0, rtol=1e-12)


def test_each_agent_has_its_own_rate_however_many_there_are(tmp_path):
    """Batches of 5 among 300 owners with 10 to 309 records: basic composition by hand for each."""
    sizes = {str(i): 10 + i for i in range(300)}
    changes = {
        "network.topology.agents": 300,
        "data.source.points": sizes,
        "learning.algorithm.horizon": 900,
        "learning.algorithm.rho": 1.0,
        "privacy.allocation": {"kind": "constant", "loss": 0.5},
        "privacy.epsilon": 1000.0,
        "record": {"metrics": ["relative_fitness"], "every": 900},
    }
    book = simulate(
        with_batch(scenario(changes), {"kind": "fixed", "size": 5}), 0, Workspace(tmp_path)
    ).ledger
    q = 5 / (10 + np.arange(300))
    assert book["releases"].sum() >= 900
    np.testing.assert_allclose(
        book["epsilon_basic"], book["releases"] * np.log(1 + q * (math.exp(0.5) - 1)), rtol=1e-9
    )


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_composed_batches_use_the_budget_and_no_more(mechanism, tmp_path):
    """Noise of the sum before it is divided: less than of the whole where the loss distribution is composed."""
    changes = {
        "privacy.mechanism": mechanism,
        "privacy.epsilon": 2.0,
        "privacy.delta": 1e-5,
        "privacy.accountant": ["pld"],
        "privacy.allocation": {"kind": "cap", "releases": 12, "compose": "pld"},
    }
    workspace = Workspace(tmp_path)
    whole, part = scenario(changes), with_batch(scenario(changes), {"kind": "poisson", "rate": 0.2})
    plans = [plan_of(one, workspace) for one in (whole, part)]
    losses = [plan.claimed(Releases(np.arange(3), np.zeros(3, int), np.zeros(3, int))) for plan in plans]
    assert (losses[1] > 2 * losses[0]).all()
    assert (losses[1] < 5 * losses[0]).all()  # but never as much as the rate: batches do not save noise
    owners, numbers = np.repeat(np.arange(3), 12), np.tile(np.arange(12), 3)
    for plan in plans:
        all_made = plan.claimed(Releases(owners, numbers, 0 * numbers))
        spent = plan.epsilon("pld", plan.charges(Claims(owners, all_made)))
        assert (spent <= 2.0).all()
        assert (spent > 2.0 * (1 - 1e-3)).all()
