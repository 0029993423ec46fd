"""Compiled streams are NumPy's Philox at an address; every part of the address matters."""

import decimal
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from p2psim.core.compiled import njit
from p2psim.core.philox import (
    exponential,
    laplace_quantile,
    philox_block,
    uniform,
    unit_gaussian,
    unit_laplace,
    unit_uniform,
)
from p2psim.core.randomness import PURPOSES, Rewound, Streams, generator, stream_key


def exponentials(key: np.ndarray, agent: int, start: int, size: int) -> np.ndarray:
    return np.array([exponential(key, agent, start + i) for i in range(size)])


KEYS = st.builds(
    stream_key,
    st.integers(-(2**80), 2**80),
    st.none() | st.integers(0, 10**6),
    st.sampled_from(PURPOSES),
    st.text(max_size=8),
)
AGENTS = st.sampled_from([-1, 0, 1, 7, 2**31 - 1, 2**31]) | st.integers(-1, 2**40)
WORDS_PER_BLOCK = 4


def numpy_uniforms(key: np.ndarray, agent: int, start: int, size: int) -> np.ndarray:
    """Places start, … of a stream, by NumPy alone: its Philox advanced by blocks, from the address."""
    bits = np.random.Philox(counter=np.array([0, 0, agent % 2**64, 0], dtype=np.uint64), key=key)
    bits.advance(start // WORDS_PER_BLOCK)
    skip = start % WORDS_PER_BLOCK
    return np.random.Generator(bits).random(skip + size)[skip:]


def box_muller(u: np.ndarray) -> np.ndarray:
    """Standard normal numbers of pairs of uniform ones, with Python's functions, one by one."""
    drawn = []
    for one, other in zip(u[::2].tolist(), u[1::2].tolist(), strict=True):
        radius = math.sqrt(-2.0 * math.log(1.0 - one))
        drawn += [radius * math.cos(2.0 * math.pi * other), radius * math.sin(2.0 * math.pi * other)]
    return np.array(drawn)


def exact_laplace_quantile(u: float) -> float:
    """Unit Laplace quantile with 50 digits, rounded once."""
    with decimal.localcontext(prec=50):
        lesser = min(decimal.Decimal(u), 1 - decimal.Decimal(u)) or decimal.Decimal(2) ** -55
        return float((2 * lesser).ln() * (1 if u < 0.5 else -1))


@njit(error_model="numpy")
def laplace_quantiles(u):  # type: ignore[no-untyped-def]
    out = np.empty(u.size)
    for i in range(u.size):
        out[i] = laplace_quantile(u[i])
    return out


class TestEqualsNumPy:
    @settings(max_examples=60, deadline=None)
    @given(key=KEYS, agent=AGENTS, place=st.integers(0, 10**6))
    def test_uniform_bit_for_bit_at_any_place(self, key: np.ndarray, agent: int, place: int) -> None:
        expected = numpy_uniforms(key, agent, place, 9)
        assert [uniform(key, agent, place + i) for i in range(9)] == expected.tolist()

    @settings(max_examples=30, deadline=None)
    @given(key=KEYS, agent=AGENTS, block=st.integers(0, 10**6))
    def test_raw_words_bit_for_bit(self, key: np.ndarray, agent: int, block: int) -> None:
        bits = np.random.Philox(counter=np.array([0, 0, agent % 2**64, 0], dtype=np.uint64), key=key)
        bits.advance(block)
        assert [int(word) for word in philox_block(key, agent, block)] == bits.random_raw(4).tolist()

    @pytest.mark.parametrize("agent", [-1, 0, 5, 2**31])
    def test_generator_begins_the_same_stream(self, agent: int) -> None:
        key = stream_key(3, 1, "peers")
        assert generator(key, agent).random(100).tolist() == [uniform(key, agent, i) for i in range(100)]

    @pytest.mark.parametrize("agent", [-1, 0, 7, 2**31])
    @pytest.mark.parametrize("lane", [0, 1])
    def test_generator_is_numpys_philox_at_the_address(self, agent: int, lane: int) -> None:
        """As NumPy makes it, from a counter and a key; every kind of draw, and after others of another stream."""
        key = stream_key(5, 1, "loss")
        rewound = Rewound(key)
        rewound.at(3, 1).integers(7, size=3, dtype=np.uint32)
        for found in (generator(key, agent, lane), rewound.at(agent, lane)):
            counter = np.array([0, 0, agent % 2**64, lane], dtype=np.uint64)
            expected = np.random.Generator(np.random.Philox(counter=counter, key=key))
            for draw in ("random", "exponential", "standard_normal"):
                assert (getattr(found, draw)(size=50) == getattr(expected, draw)(size=50)).all()
            assert (found.integers(9, size=51) == expected.integers(9, size=51)).all()

    @settings(max_examples=30, deadline=None)
    @given(key=KEYS, agent=AGENTS, start=st.integers(0, 10**6))
    def test_exponentials_are_minus_log_of_one_minus_u(self, key: np.ndarray, agent: int, start: int) -> None:
        expected = -np.log1p(-numpy_uniforms(key, agent, start, 40))
        drawn = exponentials(key, agent, start, 40)
        np.testing.assert_allclose(drawn, expected, rtol=1e-14, atol=0)
        assert drawn.tolist() == [exponential(key, agent, start + i) for i in range(40)]

    @settings(max_examples=30, deadline=None)
    @given(key=KEYS, agent=AGENTS, row=st.integers(0, 10**5), p=st.integers(1, 9))
    def test_laplace_is_the_quantile_of_u(self, key: np.ndarray, agent: int, row: int, p: int) -> None:
        blocks = -(-p // WORDS_PER_BLOCK)
        drawn = np.empty((3, p))
        unit_laplace(key, np.full(3, agent), np.arange(row, row + 3), drawn)
        for r in range(3):
            u = numpy_uniforms(key, agent, (row + r) * blocks * WORDS_PER_BLOCK, p)
            assert drawn[r].tolist() == laplace_quantiles(u).tolist()
            np.testing.assert_array_max_ulp(
                drawn[r], np.array([exact_laplace_quantile(x) for x in u.tolist()])
            )

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.integers(0, 2**53 - 1), min_size=1, max_size=9))
    @example([0, 1, 2, 2**51, 2**52 - 1, 2**52, 2**52 + 1, 2**53 - 2, 2**53 - 1])
    @example(
        [int(2**52 * 0.5**0.5) + i for i in range(-4, 5)]
    )  # where the logarithm takes the next power of two
    def test_laplace_quantiles_are_right_to_the_last_place(self, words: list[int]) -> None:
        u = np.array(words) * 2.0**-53
        exact = np.array([exact_laplace_quantile(x) for x in u.tolist()])
        np.testing.assert_array_max_ulp(laplace_quantiles(u), exact)
        # The same alone, where the processor cannot work on four at a time.
        assert laplace_quantiles(u).tolist() == [
            float(laplace_quantiles(u[i : i + 1])[0]) for i in range(u.size)
        ]

    @pytest.mark.verification
    def test_laplace_noise_is_the_same_on_a_processor_that_does_less_at_a_time(self) -> None:
        script = (
            "import hashlib, numpy as np\n"
            "from p2psim.core.philox import unit_laplace\n"
            "from p2psim.core.randomness import stream_key\n"
            "digest, releases = hashlib.sha256(), np.arange(5000)\n"
            "for p in range(1, 12):\n"
            "    drawn = np.empty((5000, p))\n"
            "    unit_laplace(stream_key(3, 1, 'noise'), releases % 7, releases, drawn)\n"
            "    digest.update(drawn.tobytes())\n"
            "print(digest.hexdigest())\n"
        )
        found = {
            subprocess.run(
                [sys.executable, "-c", script],
                env=os.environ | kind,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for kind in ({}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""})
        }
        assert len(found) == 1

    @settings(max_examples=30, deadline=None)
    @given(key=KEYS, agent=AGENTS, row=st.integers(0, 10**5), p=st.integers(1, 9))
    def test_gaussian_is_box_mullers_bit_for_bit(self, key: np.ndarray, agent: int, row: int, p: int) -> None:
        whole = WORDS_PER_BLOCK * -(-p // WORDS_PER_BLOCK)
        drawn, flat = np.empty((3, p)), np.empty((3, p))
        unit_gaussian(key, np.full(3, agent), np.arange(row, row + 3), drawn)
        unit_uniform(key, np.full(3, agent), np.arange(row, row + 3), flat)
        for r in range(3):
            u = numpy_uniforms(key, agent, (row + r) * whole, whole)
            assert drawn[r].tolist() == box_muller(u)[:p].tolist()
            assert flat[r].tolist() == u[:p].tolist()

    @pytest.mark.parametrize("fill", [unit_laplace, unit_gaussian, unit_uniform])
    @settings(max_examples=30, deadline=None)
    @given(row=st.integers(0, 1000), rows=st.integers(1, 12), p=st.integers(1, 9))
    def test_rows_one_by_one_or_all_at_once(
        self, fill: Callable[..., None], row: int, rows: int, p: int
    ) -> None:
        key = stream_key(1, 0, "noise")
        together, alone = np.empty((rows, p)), np.empty((rows, p))
        fill(key, np.full(rows, 2), np.arange(row, row + rows), together)
        for r in range(rows):
            fill(key, np.array([2]), np.array([row + r]), alone[r : r + 1])
        assert together.tobytes() == alone.tobytes()


class TestLaws:
    """Fixed seeds; each test rejects a right generator with probability 1e-4."""

    LEVEL = 1e-4

    def test_exponential(self) -> None:
        drawn = exponentials(stream_key(0, 0, "clocks"), 3, 0, 20_000)
        assert stats.kstest(drawn, "expon").pvalue > self.LEVEL

    @pytest.mark.parametrize("p", [1, 5])
    def test_laplace(self, p: int) -> None:
        drawn = np.empty((20_000 // p, p))
        unit_laplace(stream_key(0, 0, "noise"), np.full(len(drawn), 3), np.arange(len(drawn)), drawn)
        assert stats.kstest(drawn.ravel(), "laplace").pvalue > self.LEVEL

    @pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
    def test_gaussian(self, p: int) -> None:
        drawn = np.empty((20_000 // p, p))
        unit_gaussian(stream_key(0, 0, "noise"), np.full(len(drawn), 3), np.arange(len(drawn)), drawn)
        assert stats.kstest(drawn.ravel(), "norm").pvalue > self.LEVEL
        # Both numbers of a pair take their radius from the same word: neither they nor their squares are correlated.
        for one, other in itertools.combinations(drawn.T, 2):
            for a, b in ((one, other), (one**2, other**2)):
                z = np.arctanh(np.corrcoef(a, b)[0, 1]) * np.sqrt(len(drawn) - 3)
                assert abs(z) < stats.norm.isf(self.LEVEL / 112)  # 2·28 two-sided tests for p = 8

    def test_agents_are_uncorrelated(self) -> None:
        key, size = stream_key(0, 0, "clocks"), 20_000
        streams = [numpy_uniforms(key, agent, 0, size) for agent in (-1, 0, 1, 2)]
        for one, other in itertools.combinations(streams, 2):
            # Fisher's z is normal with deviation 1/√(size − 3).
            z = np.arctanh(np.corrcoef(one, other)[0, 1]) * np.sqrt(size - 3)
            assert abs(z) < stats.norm.isf(self.LEVEL / 12)


def first_draws(key: np.ndarray, agent: int = 0) -> tuple[float, ...]:
    return tuple(uniform(key, agent, i) for i in range(4))


class TestAddresses:
    @pytest.mark.parametrize(
        "keys",
        [
            pytest.param([stream_key(seed, 0, "clocks") for seed in (0, 1, 2, 3, 4, 5, 6)], id="seven seeds"),
            pytest.param(
                [stream_key(s, 0, "clocks") for s in (-1, 2**32 - 1, 2**64 - 1, 10**40)], id="seeds mod 2^k"
            ),
            pytest.param([stream_key(0, replica, "clocks") for replica in (None, 0, 1, 10)], id="replicas"),
            pytest.param([stream_key(0, 0, purpose) for purpose in PURPOSES], id="purposes"),
            pytest.param([stream_key(0, 0, "clocks", variant) for variant in ("", "a", "b")], id="variants"),
            pytest.param(
                [stream_key(1, 11, "clocks"), stream_key(11, 1, "clocks")],
                id="seed 1 replica 11, and swapped",
            ),
        ],
    )
    def test_another_address_gives_other_draws(self, keys: list[np.ndarray]) -> None:
        assert len({first_draws(key) for key in keys}) == len(keys)

    def test_agents_have_their_own_draws(self) -> None:
        key = stream_key(0, 0, "clocks")
        agents = [*range(-1, 1000), 2**31, 2**32, 2**32 + 1]
        draws = np.array([first_draws(key, agent) for agent in agents])
        assert np.unique(draws).size == draws.size

    def test_a_place_is_never_drawn_twice_by_neighbours(self) -> None:
        """An agent's stream does not run into that of the next one, as seed + agent schemes do."""
        key = stream_key(0, 0, "clocks")
        draws = np.concatenate([exponentials(key, agent, 0, 2000) for agent in range(10)])
        assert np.unique(draws).size == draws.size

    def test_the_same_address_gives_the_same_draws(self) -> None:
        assert first_draws(stream_key(5, 2, "noise", "x"), 3) == first_draws(
            stream_key(5, 2, "noise", "x"), 3
        )

    @pytest.mark.parametrize("purpose", ["clock", "", "Noise"])
    def test_unknown_purpose(self, purpose: str) -> None:
        with pytest.raises(ValueError, match=r"unknown purpose .*known: clocks, peers"):
            stream_key(0, 0, purpose)

    def test_streams_of_a_replica(self) -> None:
        streams = Streams(4, 2, {"noise": "cell"})
        assert streams.key("noise").tolist() == stream_key(4, 2, "noise", "cell").tolist()
        assert streams.key("clocks").tolist() == stream_key(4, 2, "clocks").tolist()
        assert streams.generator("loss", -1).random() == uniform(stream_key(4, 2, "loss"), -1, 0)

    @pytest.mark.parametrize("seed", [0, -5, 2**200])
    def test_any_whole_number_is_a_seed(self, seed: int) -> None:
        draws = first_draws(stream_key(seed, 0, "clocks"))
        assert all(0 <= u < 1 for u in draws)
