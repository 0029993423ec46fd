"""Numbers that a float cannot hold are refused at every door, with what was given; all others are the nearest float."""

import argparse
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from p2psim.analysis.forecasts.exchange import read_parties
from p2psim.cli.account.options import read_list
from p2psim.cli.arguments import number as argument
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.core.text_tables import decimal, matrix_of, number
from p2psim.data.columns import encode
from p2psim.data.table_file import read_csv
from p2psim.network import graph_formats
from p2psim.network.graph_formats import read_edges, read_graphml, read_matrix
from p2psim.scenario.yaml import read, scalar

GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="w" for="edge" attr.name="weight" '
    'attr.type="double"/><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
    '<edge source="a" target="b"><data key="w">{}</data></edge></graph></graphml>'
)


def in_file(read_it: Callable[[Path], Any], content: str) -> Callable[[str, Path], Any]:
    def door(text: str, folder: Path) -> Any:
        place = folder / "file"
        place.write_text(content.format(text))
        return read_it(place)

    return door


def edge_weight(graph: Any) -> float:
    return next(iter(graph.graph.edges(data="weight")))[2]


def column(place: Path) -> float:
    file = read_csv(str(place), "data.source.path")
    return float(file.finite(["value"], "data.source.x")[-1, 0])


def finite_of_text(text: str) -> float:
    values = encode(pd.DataFrame({"a": ["1", "0", text]}), "data.source")[0]
    return float(values[-1, 0])


#: Each reads a text, and returns the number.
DOORS: dict[str, Callable[[str, Path], float]] = {
    "argument": lambda text, _: argument(text),
    "yaml": lambda text, _: scalar(text),
    "yaml file": lambda text, _: read(f"a: [{text}]").content["a"].content[0].content,
    "table": lambda text, _: number(text) or 0.0,
    "releases": lambda text, _: read_list(f"0.1,{text}", "--loss", "laplace", None)[1][2],
    "column": in_file(column, "a,value\n1,0\n2,{}\n"),
    "column with gaps": in_file(column, "a,value\n1,1.0 \n2, {}\n"),
    "text": lambda text, _: finite_of_text(text),
    "matrix": in_file(lambda place: matrix_of(place, "key")[1, 0], "1,2\n{},3\n"),
    "weights": in_file(lambda place: read_matrix(place).weights[0], "0,{0}\n{0},0\n"),
    "edges": in_file(lambda place: edge_weight(read_edges(place)), "b c {}\n"),
    "gml": in_file(lambda place: graph_formats.parse_gml(place.read_text(), place)[0][1], "weight {}\n"),
    "graphml": in_file(lambda place: edge_weight(read_graphml(place)), GRAPHML),
}
REFUSALS = (ValueError, InputError, argparse.ArgumentTypeError)
LARGEST, SMALLEST = Decimal(2) ** 1024 - Decimal(2) ** 970, Decimal(2) ** -1075
SETTINGS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def is_beyond(text: str) -> bool:
    """Whether the nearest float is another kind of number, by exact arithmetic."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 400, 10**9, -(10**9)
        exact = Decimal(text)
        return abs(exact) >= LARGEST or 0 < abs(exact) <= SMALLEST


@SETTINGS
@given(
    door=st.sampled_from(sorted(DOORS)),
    whole=st.integers(0, 99),
    part=st.integers(0, 10**6),
    exponent=st.integers(-420, 420) | st.integers(-330, -318) | st.integers(303, 310),
)
@example("argument", 1, 0, -400)
@example("column", 1, 0, -400)
@example("column", 1, 0, 400)
@example("edges", 1, 0, -400)
@example("weights", 1, 0, -400)
@example("graphml", 1, 0, -400)
@example("gml", 1, 0, 400)
@example("releases", 1, 0, -400)
def test_every_door(tmp_path: Path, door: str, whole: int, part: int, exponent: int) -> None:
    text = f"{whole}.{part}e{exponent:+}"
    if is_beyond(text):
        with pytest.raises(REFUSALS) as caught:
            DOORS[door](text, tmp_path)
        assert text in str(caught.value) or door == "text"
    elif float(text) > 0:
        assert DOORS[door](text, tmp_path) == float(text)


@given(st.floats(allow_nan=False))
def test_what_a_float_holds_is_read_as_it_is(value: float) -> None:
    assert decimal(repr(value)) == value


@pytest.mark.parametrize("text", ["0", "-0.0", "0e-999", "000.000e+5", "inf", "-Infinity", "+inf"])
def test_zero_and_infinity_are_what_they_say(text: str) -> None:
    assert decimal(text) == float(text)


@pytest.mark.parametrize("text", ["1e-400", "1e400", "9" * 400, f"0.{'0' * 400}1"])
def test_the_command(text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments in (
        ["account", "calibrate", "--loss", "0.1", "--epsilon", text],
        ["account", "releases", "--loss", text, "--delta", "0.1"],
        ["compare", str(tmp_path), "--reference", f"a={text}"],
    ):
        try:
            code: object = main(arguments)
        except SystemExit as end:
            code = end.code
        assert code == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert text[:20] in said or "compare" in arguments


def test_statistics_of_parties(tmp_path: Path) -> None:
    file = tmp_path / "parties.json"
    file.write_text('{"p2psim_statistics": 1, "parties": [{"moment": [[1e-400]]}]}')
    with pytest.raises(InputError, match="1e-400 is too small for a number"):
        read_parties([str(file)])


def test_finite_numbers_only_become_infinite_where_infinity_is_written() -> None:
    assert math.isinf(scalar(".inf"))
    with pytest.raises(ValueError, match=r"1e400 is too large for a number; write \.inf for infinity"):
        scalar("1e400")
