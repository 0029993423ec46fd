"""Partitions that make owners unlike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.distributions import Distribution, Lognormal
from p2psim.core.errors import MeaningError
from p2psim.data.partitions import Dirichlet, Shards, Unbalanced, proportional

LABELS = st.lists(st.integers(0, 4), min_size=12, max_size=80).map(lambda found: np.array(found, dtype=float))
PARTITIONS = st.sampled_from(
    [
        Shards(shards=1),
        Shards(shards=3),
        Dirichlet(concentration=5.0),
        Dirichlet(concentration=100.0, least=2),
        Dirichlet(concentration=0.3, per="owner"),
        Dirichlet(concentration=1e-3, per="owner", least=3),
        Unbalanced(sizes=1.0),
        Unbalanced(sizes=Distribution(exponential=1.0)),
    ]
)


def divided(partition, labels, agents, seed=0):
    owners, names = partition.split(labels, agents, None, np.random.default_rng(seed))
    assert names == tuple(str(i) for i in range(agents))
    return owners


@given(partition=PARTITIONS, labels=LABELS, agents=st.integers(1, 4), seed=st.integers(0, 100))
def test_every_row_has_one_owner_and_every_owner_a_row(partition, labels, agents, seed):
    owners = divided(partition, labels, agents, seed)
    assert sorted(np.concatenate(owners).tolist()) == list(range(labels.size))
    assert all(rows.size for rows in owners)
    again = divided(partition, labels, agents, seed)
    assert all(np.array_equal(one, other) for one, other in zip(owners, again, strict=True))


@given(labels=LABELS, agents=st.integers(1, 4), each=st.integers(1, 3))
def test_shards_are_of_one_size_and_span_few_labels(labels, agents, each):
    """A shard of sorted rows; with balanced labels it holds at most one change of label more than it must."""
    owners = divided(Shards(shards=each), labels, agents)
    assert max(map(len, owners)) - min(map(len, owners)) <= each
    balanced = np.repeat(np.arange(agents * each), 7).astype(float)
    for rows in divided(Shards(shards=each), balanced, agents):
        assert np.unique(balanced[rows]).size == each


def test_the_smaller_the_concentration_the_fewer_hold_a_label():
    """Largest share of a label with anyone: near one for α = .01, near 1/4 for α = 1e4."""
    labels = np.repeat(np.arange(5), 400).astype(float)
    largest = {}
    for concentration in (0.01, 1e4):
        owners = divided(Dirichlet(concentration=concentration), labels, 4, seed=3)
        counts = np.array([np.bincount(labels[rows].astype(int), minlength=5) for rows in owners])
        largest[concentration] = (counts.max(axis=0) / 400).mean()
    assert largest[0.01] > 0.95
    assert largest[1e4] == pytest.approx(0.25, abs=0.02)


def test_dirichlet_shares_have_their_law():
    """Var of a share is (1/n)(1 − 1/n)/(nα + 1): 3,000 draws, fixed seed; five standard errors: 6e-7 each."""
    labels, random, shares = np.zeros(500), np.random.default_rng(0), []
    for _ in range(3000):
        owners, _ = Dirichlet(concentration=2.0, least=1).split(labels, 3, None, random)
        shares.append(owners[0].size / 500)
    expected = (1 / 3) * (2 / 3) / (3 * 2 + 1)
    assert np.mean(shares) == pytest.approx(1 / 3, abs=5 * np.sqrt(expected / 3000))
    assert np.var(shares) == pytest.approx(expected, rel=5 * np.sqrt(2 / 3000))


@given(
    labels=LABELS, agents=st.integers(1, 4), seed=st.integers(0, 100), concentration=st.floats(1e-300, 1e6)
)
def test_owners_that_draw_labels_hold_the_same_number(labels, agents, seed, concentration):
    owners = divided(Dirichlet(concentration=concentration, per="owner"), labels, agents, seed)
    assert max(map(len, owners)) - min(map(len, owners)) <= 1


def test_labels_that_an_owner_draws_have_their_law():
    """The first owner's: of m rows m·p_k, with the variance m·p(1 − p)(m + α)/(1 + α) of a Dirichlet multinomial.

    No label is used up: the first owner takes 20 rows, and there are 20 of the rarest label. 4,000 draws, fixed seed;
    five standard errors.
    """
    labels = np.repeat([0.0, 1.0, 2.0], [20, 30, 50])
    m, alpha, draws = 20, 3.0, 4000
    random, counts = np.random.default_rng(1), []
    for _ in range(draws):
        owners, _ = Dirichlet(concentration=alpha, per="owner").split(labels, 5, None, random)
        counts.append(np.bincount(labels[owners[0]].astype(int), minlength=3))
    p = np.array([0.2, 0.3, 0.5])
    variance = m * p * (1 - p) * (m + alpha) / (1 + alpha)
    error = np.abs(np.mean(counts, axis=0) - m * p) / np.sqrt(variance / draws)
    assert error.max() < 5
    np.testing.assert_allclose(np.var(counts, axis=0), variance, rtol=5 * np.sqrt(3 / draws))


class TestTenClasses:
    """The digits, as benchmarks divide them."""

    LABELS = np.random.default_rng(0).permutation(
        np.repeat(np.arange(10.0), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    )

    def counts(self, partition, agents, seed=0):
        owners = divided(partition, self.LABELS, agents, seed)
        return np.array([np.bincount(self.LABELS[rows].astype(int), minlength=10) for rows in owners])

    @pytest.mark.parametrize("each", [1, 2, 5])
    def test_an_owner_of_shards_sees_few_digits(self, each):
        """A shard is shorter than the rows of a digit, so that it holds two at most."""
        counts = self.counts(Shards(shards=each), 20)
        assert counts.sum() == self.LABELS.size
        assert np.ptp(counts.sum(axis=1)) <= each
        assert (counts > 0).sum(axis=1).max() <= 2 * each
        # 20 times as many shards as owners have: about each·20/10 owners of a digit, at the ends one more.
        assert (counts > 0).sum(axis=0).max() <= 2 * each + 2

    @pytest.mark.parametrize("per", ["label", "owner"])
    def test_concentration_makes_owners_like_or_unlike(self, per):
        """Mean over owners of the share of the commonest digit: .1 where all are alike, 1 where each has one."""
        shares = {}
        for concentration in (0.01, 1e5):
            counts = self.counts(Dirichlet(concentration=concentration, per=per), 5)
            shares[concentration] = (counts.max(axis=1) / counts.sum(axis=1)).mean()
        assert shares[0.01] > 2 * shares[1e5]
        assert shares[1e5] < 0.15

    @pytest.mark.parametrize("concentration", [0.5, 1.0, 10.0])
    def test_a_minimum_of_records_holds(self, concentration):
        for seed in range(5):
            counts = self.counts(Dirichlet(concentration=concentration, least=60), 10, seed)
            assert counts.sum(axis=1).min() >= 60
        with pytest.raises(MeaningError, match=r"data\.partition\.least: 180 records for each of 10 owners"):
            self.counts(Dirichlet(concentration=concentration, least=180, per="owner"), 10)


@given(total=st.integers(1, 500), weights=st.lists(st.floats(0, 100), min_size=1, max_size=20))
def test_proportional_numbers_add_up_and_are_near(total, weights):
    weights = np.array(weights)
    total += weights.size
    sizes = proportional(total, weights)
    assert sizes.sum() == total
    assert sizes.min() >= 1
    if weights.sum() > 0:
        # In the order of the weights; and exactly proportional where that is whole and at least one.
        order = np.argsort(weights, kind="stable")
        assert (np.diff(sizes[order]) >= -1).all()


def test_proportional_where_that_is_whole():
    assert proportional(60, np.array([1.0, 2.0, 3.0])).tolist() == [10, 20, 30]
    assert proportional(6, np.array([1.0, 0.0, 0.0])).tolist() == [4, 1, 1]


def test_unbalanced_sizes_follow_the_draws():
    heavy = Unbalanced(sizes=Distribution(lognormal=Lognormal(median=1.0, sigma=2.0)))
    sizes = sorted(len(rows) for rows in divided(heavy, np.zeros(10_000), 50))
    assert sizes[0] == 1 or sizes[0] < 20
    assert sizes[-1] > 1_000
    assert {len(rows) for rows in divided(Unbalanced(sizes=1.0), np.zeros(10_000), 50)} == {200}


@pytest.mark.parametrize(
    ("partition", "labels", "agents", "said"),
    [
        (Shards(shards=5), np.zeros(9), 2, "5 shards for each of 2 owners are more than 9 rows"),
        (
            Dirichlet(concentration=1.0, least=5),
            np.zeros(9),
            2,
            "5 records for each of 2 owners are more than",
        ),
        (Dirichlet(concentration=1.0), np.arange(2000.0), 2, "different numbers: take shards, or unbalanced"),
        (Dirichlet(concentration=1e-3, least=30), np.zeros(100), 3, "give a larger one, or fewer owners"),
        (Unbalanced(sizes=1.0), np.zeros(3), 4, "4 owners cannot all have one of 3 rows"),
        (Shards(agents=3), np.zeros(30), 4, "gives 3 owners, but network.topology asks for 4"),
    ],
)
def test_what_cannot_be_is_refused(partition, labels, agents, said):
    with pytest.raises(MeaningError, match=said):
        divided(partition, labels, agents)
