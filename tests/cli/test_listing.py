"""Lists of releases as the command line writes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.cli.account.options import MOST, NOISES, listed, noise_of, read_list
from p2psim.core.errors import InputError


def test_entries_name_their_own_noise_rate_and_count() -> None:
    assert read_list("0.1x50, gaussian:0.5x10,laplace:1@0.01x100,2", "--loss", "pure", 0.5) == [
        ("pure", 0.5, 0.1, 50),
        ("gaussian", 0.5, 0.5, 10),
        ("laplace", 0.01, 1.0, 100),
        ("pure", 0.5, 2.0, 1),
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NOISES),
            st.one_of(st.none(), st.floats(1e-6, 0.999)),
            st.floats(1e-9, 1e9),
            st.integers(1, 10**6),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_what_is_read(entries: list[tuple[str, float | None, float, int]]) -> None:
    text = ",".join(
        f"{noise}:{loss!r}{'' if rate is None else f'@{rate!r}'}x{count}"
        for noise, rate, loss, count in entries
    )
    assert read_list(text, "--loss", "pure", None) == entries


def test_scales_become_losses_and_sampling_everybody_is_no_sampling() -> None:
    assert read_list("10x2,20@1", "--scale", "laplace", None, 2.0) == [
        ("laplace", None, 0.2, 2),
        ("laplace", None, 0.1, 1),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "entries look like"),
        ("0.1,,0.2", "entries look like"),
        ("0.1x2x3", "entries look like"),
        ("cauchy:1", "unknown noise 'cauchy'"),
        ("0", "a loss must be a positive number, got '0'"),
        ("-1", "a loss must be a positive number"),
        ("nan", "a loss must be a positive number"),
        ("inf", "a loss must be a positive number"),
        ("one", "a loss must be a positive number, got 'one'"),
        ("1x0", "a count must be a whole number, at least 1, got '0'"),
        ("1x1.5", "a count must be a whole number"),
        ("1x-2", "a count must be a whole number"),
        ("1@0", "a sampling rate must be above 0 and at most 1, got 0"),
        ("1@1.5", "a sampling rate must be above 0"),
        ("1@x", "entries look like"),
        ("1@a", "a sampling rate must be above 0 and at most 1, got nan"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read_list(text, "--loss", "laplace", None)
    assert str(raised.value).startswith("--loss: ")


def test_a_list_is_written_out_in_its_order_and_repeated() -> None:
    found = listed(read_list("0.1x2,gaussian:0.5,0.3", "--loss", "laplace", None), 2)
    np.testing.assert_array_equal(found.loss, [0.1, 0.1, 0.5, 0.3] * 2)
    np.testing.assert_array_equal(found.kind, [0, 0, 1, 0] * 2)
    assert found.noises == (noise_of("laplace", None), noise_of("gaussian", None))


def test_prefixes_are_agents_who_made_only_so_many() -> None:
    charges = listed(read_list("0.1x2,0.5", "--loss", "laplace", None)).prefixes([1, 3])
    np.testing.assert_array_equal(charges.loss, [0.1, 0.1, 0.1, 0.5])
    np.testing.assert_array_equal(charges.offsets, [0, 1, 4])


def test_too_many_releases_are_refused_before_they_are_written_out() -> None:
    with pytest.raises(InputError, match="at most"):
        listed([("laplace", None, 1.0, MOST)], 2)
    with pytest.raises(InputError, match="at most 127 different"):
        listed([("laplace", 1 / (2 + i), 1.0, 1) for i in range(128)])
