"""Tables fit the terminal, and say all that they are given."""

import contextlib
import io
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.printing import last_parts, plain, print_json, print_table, show

WORDS = st.text("abcdefgh", min_size=1, max_size=12)
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
NUMBERS = st.floats(-1e6, 1e6).map(lambda value: float(f"{value:.4g}"))


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, object]]:
    heads = draw(st.lists(TEXTS, min_size=1, max_size=12, unique=True))
    kinds = [draw(st.sampled_from([TEXTS, NUMBERS])) for _ in heads]
    rows = draw(st.integers(1, 6))
    return [{head: draw(kind) for head, kind in zip(heads, kinds, strict=True)} for _ in range(rows)]


def printed(rows: list[dict[str, object]], **options: int) -> str:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", "80")
        print_table(rows, **options)
    return out.getvalue()


@given(rows=tables(), keys=st.integers(0, 2))
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(
    rows: list[dict[str, object]], keys: int
) -> None:
    """Keys of up to two columns leave place for any column of these widths."""
    text = printed(rows, keys=keys)
    assert max(map(len, text.splitlines())) <= 80
    words = set(re.split(r"[\s:,]+", text))
    for row in rows:
        for head, value in row.items():
            assert set(head.split()) <= words
            assert set((f"{value:.4g}" if isinstance(value, float) else str(value)).split()) <= words


def test_what_is_the_same_everywhere_is_told_once_where_place_is_needed() -> None:
    rows = [{"cell": i, "size": 7, "nothing": None} for i in range(3)]
    assert printed(rows) == "cell  size\n   0     7\n   1     7\n   2     7\n"
    wide = [{**row, "x" * 70: row["cell"]} for row in rows]
    assert printed(wide).splitlines()[:2] == ["size: 7", "cell  " + "x" * 70]


def test_each_of_several_tables_begins_with_the_keys() -> None:
    rows = [{"cell": i, **{f"{'x' * 14}{j}": float(i) for j in range(6)}} for i in range(2)]
    lines = printed(rows).splitlines()
    assert [line for line in lines if line.startswith("cell")] == [
        "cell  " + "  ".join(f"{'x' * 14}{j}" for j in some) for some in ([0, 1, 2, 3], [4, 5])
    ]


def test_of_many_rows_the_number_of_the_others_is_told() -> None:
    assert printed([{"a": i} for i in range(9)], most=2).endswith("0\n1\n… and 7 more rows\n")


def test_short_names_of_keys_tell_them_apart() -> None:
    keys = [
        "privacy.epsilon",
        "learning.algorithm.start.epsilon",
        "network.channel.loss",
        "learning.loss",
        "seed",
    ]
    assert last_parts(keys) == {
        "privacy.epsilon": "privacy.epsilon",
        "learning.algorithm.start.epsilon": "start.epsilon",
        "network.channel.loss": "channel.loss",
        "learning.loss": "learning.loss",
        "seed": "seed",
    }
    assert last_parts(["learning.model", "seed"], ["model"]) == {
        "learning.model": "learning.model",
        "seed": "seed",
    }


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.inf, -math.inf, math.nan, 1.5], "b": (1, None, True)})
    tree = json.loads(capsys.readouterr().out, parse_constant=lambda constant: pytest.fail(constant))
    assert tree == {"a": [".inf", "-.inf", ".nan", 1.5], "b": [1, None, True]}
    assert plain({1: 2}) == {"1": 2}


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (True, "yes"), (3, "3"), (0.1234567, "0.1235"), ("x", "x")]
)
def test_entries(value: object, text: str) -> None:
    assert show(value) == text
