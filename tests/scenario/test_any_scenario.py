"""Whatever a scenario holds, it is taken or refused with a place and in words, and nothing is written."""

import contextlib
import copy
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.core.nodes import plain
from p2psim.scenario.model import Scenario
from p2psim.scenario.yaml import read_file

ROOT = Path(__file__).parents[2] / "scenarios"
#: Small ones, of each family, with channels, absences, budgets and sweeps.
NAMES = (
    "polled_star",
    "synchronous_rounds",
    "push_sum",
    "noise_allocation",
    "minibatches",
    "collisions",
    "w_frozen",
)
TREES = [plain(read_file(ROOT / f"{name}.yaml")) for name in NAMES]
#: What belongs to the program's language and not to a message.
INTERNAL = re.compile(
    r"Traceback|np\.|numpy|pydantic|<class|object at 0x|NoneType|dtype|\w+Error\b|\w+Exception\b|subscriptable"
)
NUMBERS = st.sampled_from(
    [
        0,
        -1,
        1,
        2,
        10**6,
        10**12,
        2**63,
        -(2**70),
        10**400,
        1e2,
        1.5,
        -0.5,
        1e-300,
        5e-324,
        1e300,
        math.inf,
        math.nan,
    ]
)
TEXTS = st.sampled_from(
    ["", "x", "é\u200b", "a.b", "~nobodyxx/a.csv", "/dev/zero", "a\0b", "x" * 300, "laplace", "["]
)
JUNK = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["kind", "a", "0", "time", "uniform"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(tree: Any, steps: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [inner for step, entry in entries for inner in [(*steps, step), *places(entry, (*steps, step))]]


def at(tree: Any, steps: tuple[Any, ...]) -> Any:
    for step in steps:
        tree = tree[step]
    return tree


@st.composite
def spoiled(draw: st.DrawFn) -> dict[str, Any]:
    """A scenario with some values replaced, scaled, moved or removed, and some keys added."""
    tree = copy.deepcopy(draw(st.sampled_from(TREES)))
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.sampled_from(places(tree) or [()]))
        if not where:
            break
        inside, last = at(tree, where[:-1]), where[-1]
        how = draw(st.sampled_from(["replace", "replace", "remove", "scale", "move", "add"]))
        number = isinstance(inside[last], int | float) and not isinstance(inside[last], bool)
        if how == "remove":
            del inside[last]
        elif how == "scale" and number:
            inside[last] *= draw(st.sampled_from([-1, 0, 1e-9, 1e9, 1e100, 0.1, 1.0]))
        elif how == "move":
            inside[last] = copy.deepcopy(at(tree, draw(st.sampled_from(places(tree)))))
        elif how == "add" and isinstance(inside, dict):
            inside[draw(st.sampled_from(["zz", "kind", "seed", "agents", "every", "é", f"{last}x"]))] = draw(
                JUNK
            )
        else:
            inside[last] = draw(JUNK)
    return tree


@settings(max_examples=60, deadline=None)
@given(tree=spoiled())
def test_a_scenario_is_taken_or_refused(tree: dict[str, Any]) -> None:
    try:
        Scenario.from_dict(tree, "f.yaml")
    except InputError as error:
        for fault in error.faults:
            assert fault.message
            assert str(fault).startswith("f.yaml: ")
            assert not INTERNAL.search(str(fault).replace(json.dumps(tree), "")), str(fault)


@settings(max_examples=15, deadline=None)
@given(tree=spoiled(), jobs=st.sampled_from([[], ["--json"]]))
def test_the_command_says_it(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, Any], jobs: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    tree.pop("sweep", None)
    tree.pop("figure", None)
    # JSON is YAML, and says whole numbers, infinities apart, as they are.
    text = json.dumps(tree, allow_nan=True).replace("NaN", ".nan").replace("Infinity", ".inf")
    (folder / "f.yaml").write_text(text)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(["check", str(folder / "f.yaml"), "--no-pilot", *jobs])
    assert code in (0, 2), said.getvalue()
    if code == 2:
        lines = said.getvalue().removeprefix("p2psim: ").splitlines()
        assert any(line.startswith(f"{folder / 'f.yaml'}:") for line in lines), lines
        assert not INTERNAL.search(said.getvalue()), said.getvalue()
    assert [path.name for path in folder.iterdir()] == ["f.yaml"]


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"x", print, 1j, Scenario, [[[[[[]]]]]], {None: 1}, {(1, 2): 3}, range(3)],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("key", ["seed", "network", "data", "record", "sweep", "independent"])
def test_python_objects_in_a_scenario(key: str, value: object) -> None:
    with pytest.raises(InputError):
        Scenario.from_dict(TREES[0] | {key: value})
    with pytest.raises(InputError):
        Scenario.from_dict(value)  # type: ignore[arg-type]


def test_what_holds_itself_is_refused() -> None:
    tree: dict[str, Any] = dict(TREES[0])
    tree["sweep"] = tree
    with pytest.raises(InputError):
        Scenario.from_dict(tree)
