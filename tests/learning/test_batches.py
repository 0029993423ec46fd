"""Batches: who is drawn, with what chances, and what their gradient can tell of one record.

The statistical tests have fixed seeds and reject at a level of 1e-6 each.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from star_cases import LOSSES, random_problem, replay_compiled, star_events

from p2psim.core.errors import MeaningError
from p2psim.core.randomness import stream_key
from p2psim.learning.batches import (
    EpochBatch,
    FixedBatch,
    GradientRule,
    PoissonBatch,
    Sampling,
    Whole,
    sampling,
)
from p2psim.learning.graph.problem import GraphRule
from p2psim.learning.owner_kernel import Records, batch_gradient, draw_batch
from p2psim.learning.reference import drawn, mean_gradient
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.reference import reference_replay

LEVEL = 1e-6
KEY = stream_key(5, 0, "batches")

batches = (
    st.builds(PoissonBatch, rate=st.sampled_from([1e-300, 1e-3, 0.1, 0.5, 0.999, 1.0]))
    | st.builds(FixedBatch, size=st.integers(1, 6))
    | st.builds(EpochBatch, size=st.integers(1, 6))
)


def compiled(how: Sampling, agent: int, release: int, records: int) -> list[int]:
    """The batch that the kernels draw."""
    batch = how.for_kernel(np.array([records]))
    *_, rows, taken = batch
    count = draw_batch(batch, agent, release, records)
    assert not taken.any()
    return rows[:count].tolist()


def many(batch: PoissonBatch | FixedBatch | EpochBatch, records: int, releases: int) -> np.ndarray:
    """Whether each record takes part in each release, shape (releases, records)."""
    how = sampling(batch, np.array([records]), KEY)
    found = np.zeros((releases, records), bool)
    for t in range(releases):
        found[t, compiled(how, 0, t, records)] = True
    return found


class TestDrawing:
    @settings(max_examples=60)
    @given(batch=batches, records=st.integers(6, 40), agent=st.integers(0, 3), release=st.integers(0, 10**9))
    def test_compiled_equals_plain_record_by_record(self, batch, records, agent, release):
        how = sampling(batch, np.full(4, records), KEY)
        rows = compiled(how, agent, release, records)
        assert rows == drawn(how, agent, release, records)
        assert len(set(rows)) == len(rows)
        assert all(0 <= r < records for r in rows)

    def test_a_batch_depends_on_agent_release_and_key_alone(self):
        def draw(key, agent, release):
            return compiled(sampling(PoissonBatch(rate=0.5), np.full(3, 64), key), agent, release, 64)

        addresses = list(itertools.product([KEY, stream_key(5, 1, "batches")], range(3), range(3)))
        forwards = [draw(*address) for address in addresses]
        assert forwards == [draw(*address) for address in reversed(addresses)][::-1]
        assert len({tuple(rows) for rows in forwards}) == len(addresses)

    def test_sets_of_poisson_batches_have_their_chances(self):
        q, n, releases = 0.3, 4, 20_000
        found = many(PoissonBatch(rate=q), n, releases)
        counts = np.bincount(found @ (1 << np.arange(n)), minlength=2**n)
        sizes = np.array([bin(s).count("1") for s in range(2**n)])
        chances = q**sizes * (1 - q) ** (n - sizes)
        assert stats.chisquare(counts, releases * chances).pvalue > LEVEL

    def test_sets_of_fixed_size_are_all_alike(self):
        n, b, releases = 6, 3, 20_000
        found = many(FixedBatch(size=b), n, releases)
        counts = np.bincount(found @ (1 << np.arange(n)), minlength=2**n)
        possible = [s for s in range(2**n) if bin(s).count("1") == b]
        assert counts.sum() == counts[possible].sum()
        assert stats.chisquare(counts[possible]).pvalue > LEVEL

    @pytest.mark.parametrize(
        "batch", [PoissonBatch(rate=0.02), FixedBatch(size=20)], ids=["poisson", "fixed"]
    )
    def test_all_records_of_many_take_part_alike_and_releases_are_independent(self, batch):
        n, releases = 1000, 4000
        found = many(batch, n, releases)
        # Fixed sizes make records slightly exclusive of each other: by n − 1 in n, the statistic's mean.
        assert stats.chisquare(found.sum(axis=0)).pvalue > LEVEL
        # Records common to a batch and the next: n·q² = .4 on average, and nearly Poisson.
        common = (found[1:] & found[:-1]).sum()
        assert stats.poisson.interval(1 - LEVEL, (releases - 1) * 0.4)[0] <= common
        assert common <= stats.poisson.interval(1 - LEVEL, (releases - 1) * 0.4)[1]

    def test_sizes_of_poisson_batches_are_binomial(self):
        n, q, releases = 1000, 0.02, 4000
        sizes = many(PoissonBatch(rate=q), n, releases).sum(axis=1)
        edges = np.array([-1, 10, 13, 15, 17, 19, 21, 23, 25, 28, n])
        counts = np.histogram(sizes, edges + 0.5)[0]
        expected = releases * np.diff(stats.binom.cdf(edges, n, q))
        assert stats.chisquare(counts, expected).pvalue > LEVEL


class TestEpochs:
    """Batches that are parts of one shuffle."""

    @given(
        records=st.integers(1, 40),
        size=st.integers(1, 12),
        epoch=st.integers(0, 10**6),
        agent=st.integers(0, 2),
    )
    def test_an_epoch_has_every_record_once_but_for_what_is_left_over(self, records, size, epoch, agent):
        size = min(size, records)
        how, batches = sampling(EpochBatch(size=size), np.full(3, records), KEY), records // size
        parts = [compiled(how, agent, epoch * batches + t, records) for t in range(batches)]
        assert {len(part) for part in parts} == {size}
        rows = [row for part in parts for row in part]
        assert len(set(rows)) == len(rows) == batches * size

    def test_all_orders_are_alike(self):
        """24 orders of four records, in four batches of one: 20,000 epochs."""
        how, n, epochs = sampling(EpochBatch(size=1), np.array([4]), KEY), 4, 20_000
        orders = [tuple(compiled(how, 0, n * e + t, n)[0] for t in range(n)) for e in range(epochs)]
        counts = [orders.count(order) for order in itertools.permutations(range(n))]
        assert sum(counts) == epochs
        assert stats.chisquare(counts).pvalue > LEVEL

    def test_epochs_are_independent(self):
        """Records that the first batches of two epochs have in common: hypergeometric."""
        how, n, b = sampling(EpochBatch(size=5), np.array([20]), KEY), 20, 5
        firsts = [set(compiled(how, 0, e * (n // b), n)) for e in range(4001)]
        common = np.bincount([len(one & other) for one, other in itertools.pairwise(firsts)], minlength=b + 1)
        expected = 4000 * stats.hypergeom.pmf(np.arange(b + 1), n, b, b)
        few = expected < 5
        common, expected = (np.append(a[~few], a[few].sum()) for a in (common, expected))
        assert stats.chisquare(common, expected).pvalue > LEVEL

    def test_what_is_left_over_changes_from_epoch_to_epoch(self):
        how = sampling(EpochBatch(size=3), np.array([7]), KEY)
        left = np.zeros(7, int)
        for epoch in range(7000):
            used = {row for t in range(2) for row in compiled(how, 0, 2 * epoch + t, 7)}
            left[list(set(range(7)) - used)] += 1
        assert stats.chisquare(left).pvalue > LEVEL


class TestSizes:
    def test_divisors_and_rates(self):
        records = np.array([0, 10, 40])
        assert Whole().rates(records).tolist() == [1, 1, 1]
        assert Whole().divisors(records).tolist() == [1, 10, 40]
        assert PoissonBatch(rate=0.1).rates(records).tolist() == [0.1] * 3
        np.testing.assert_allclose(PoissonBatch(rate=0.1).divisors(records), [0.1, 1, 4])
        assert FixedBatch(size=10).rates(records).tolist() == [1, 1, 0.25]
        assert FixedBatch(size=10).divisors(records).tolist() == [1, 10, 10]
        assert EpochBatch(size=10).rates(records).tolist() == [1, 1, 1]
        assert EpochBatch(size=10).divisors(records).tolist() == [1, 10, 10]
        assert sampling(Whole(), records, KEY) is None

    @pytest.mark.parametrize("kind", [FixedBatch, EpochBatch])
    def test_more_than_an_agent_holds_is_refused(self, kind):
        with pytest.raises(MeaningError, match="9 records for agent 1, got 10") as caught:
            sampling(kind(size=10), np.array([0, 9, 40]), KEY)
        assert caught.value.faults[0].key == "learning.algorithm.batch.size"


def gradient(problem, how, owner, release, theta, clip):
    out = np.empty(problem.dimension)
    records = Records.of(problem, GraphRule(clip=clip))
    batch_gradient(records, theta, how.for_kernel(problem.records), owner, release, out)
    return out


class TestGradients:
    @settings(max_examples=60)
    @given(
        kind=st.sampled_from(sorted(LOSSES)),
        batch=batches,
        seed=st.integers(0, 1000),
        clip=st.sampled_from([np.inf, 0.5]),
    )
    def test_compiled_equals_plain(self, kind, batch, seed, clip):
        problem = random_problem(LOSSES[kind](), [6, 12], 3, seed)
        how, theta = sampling(batch, problem.records, KEY), np.random.default_rng(seed).standard_normal(3)
        theta = np.resize(theta, problem.dimension)
        for owner, release in [(0, 0), (1, 7)]:
            found = gradient(problem, how, owner, release, theta, clip)
            expected = mean_gradient(problem, owner, theta, GradientRule(clip), release, how)
            np.testing.assert_allclose(
                found, expected, rtol=1e-12, atol=1e-12 * max(1, np.abs(expected).max())
            )

    @pytest.mark.parametrize("batch", [PoissonBatch(rate=0.3), FixedBatch(size=2)], ids=["poisson", "fixed"])
    def test_their_mean_is_the_full_gradient(self, batch):
        problem = random_problem(LOSSES["logistic"](), [7], 3, seed=2)
        how, theta = sampling(batch, problem.records, KEY), np.array([0.3, -1.0, 0.5])
        found = np.array([gradient(problem, how, 0, t, theta, 1.0) for t in range(20_000)])
        full = mean_gradient(problem, 0, theta, GradientRule(1.0), 0, None)
        z = (found.mean(axis=0) - full) / (found.std(axis=0) / np.sqrt(len(found)))
        assert np.abs(z).max() < stats.norm.isf(LEVEL / 6)

    def test_an_empty_batch_is_zero(self):
        problem = random_problem(LOSSES["squared"](), [5], 2, seed=0)
        how = sampling(PoissonBatch(rate=1e-300), problem.records, KEY)
        assert gradient(problem, how, 0, 0, np.ones(2), np.inf).tolist() == [0, 0]

    @settings(max_examples=60)
    @given(
        kind=st.sampled_from(sorted(LOSSES)),
        batch=batches,
        seed=st.integers(0, 1000),
        release=st.integers(0, 50),
        place=st.integers(0, 11),
    )
    def test_a_replaced_record_moves_it_by_2_bounds_over_the_divisor_where_drawn(
        self, kind, batch, seed, release, place
    ):
        """Size and membership do not depend on the records, and the divisor is public."""
        problem, clip = random_problem(LOSSES[kind](), [12], 3, seed), 0.7
        how, theta = sampling(batch, problem.records, KEY), np.ones(problem.dimension)
        before = gradient(problem, how, 0, release, theta, clip)
        problem.X[place, :3] = -50 * problem.X[place, :3]
        problem.y[place] = -problem.y[place]
        problem.x_l1[place] = np.abs(problem.X[place]).sum()
        moved = np.abs(gradient(problem, how, 0, release, theta, clip) - before).sum()
        if place in drawn(how, 0, release, 12):
            assert moved <= 2 * clip / how.divisors[0] * (1 + 1e-9)
        else:
            assert moved == 0


class TestStar:
    @settings(max_examples=30)
    @given(
        kind=st.sampled_from(sorted(LOSSES)),
        batch=batches,
        seed=st.integers(0, 1000),
        chunk=st.integers(1, 60),
        clip=st.sampled_from([np.inf, 0.5]),
    )
    def test_compiled_equals_plain_for_chunks_of_any_size(self, kind, batch, seed, chunk, clip):
        problem = random_problem(LOSSES[kind](), [6, 9, 30], 3, seed)
        events = star_events(3, 60, seed)
        noise = 0.1 * np.random.default_rng(seed).laplace(size=(60, problem.dimension))
        method, how = StarMethod(0.02, 0.5, False), sampling(batch, problem.records, KEY)
        plain = reference_replay(problem, method, events, noise, GradientRule(clip), how)
        whole = replay_compiled(problem, method, events, noise, clip, every=1, sampling=how).recorded
        assert np.abs(whole.theta - plain).max() <= 1e-12 * np.abs(plain).max()
        pieces = replay_compiled(
            problem, method, events, noise, clip, chunk=chunk, every=1, sampling=how
        ).recorded
        assert pieces.theta.tobytes() == whole.theta.tobytes()

    def test_a_batch_of_all_is_the_full_gradient(self):
        problem = random_problem(LOSSES["logistic"](), [6, 6], 3, seed=1)
        events, noise, method = star_events(2, 40, 1), np.zeros((40, 3)), StarMethod(0.05, 0.5, False)
        full = replay_compiled(problem, method, events, noise).recorded.theta
        for batch in (PoissonBatch(rate=1.0), FixedBatch(size=6), EpochBatch(size=6)):
            how = sampling(batch, problem.records, KEY)
            theta = replay_compiled(problem, method, events, noise, sampling=how).recorded.theta
            np.testing.assert_allclose(theta, full, rtol=1e-12)
