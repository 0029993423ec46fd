"""Every whole number that the store holds is checked against the range of its column before anything is written."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import small_study as small
from hypothesis import given
from hypothesis import strategies as st

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.core.faults import schema_of
from p2psim.runs.describing import resolved_text
from p2psim.runs.manifest import Manifest, indented
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario

INT32, INT64 = 2**31 - 1, 2**63 - 1


def integers(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every whole number in the language, with its path."""
    if isinstance(schema, Mapping):
        if "looked_up" in schema.get("metadata", {}):  # any of the registered parts
            schema = schema["metadata"]["looked_up"]()
        if schema.get("type") == "int":
            yield ".".join(path), schema
        for key, entry in schema.items():
            if key not in ("cls", "metadata", "serialization"):
                yield from integers(entry, (*path, str(key)))
    elif isinstance(schema, list | tuple):
        for place, entry in enumerate(schema):
            yield from integers(entry, (*path, str(place)))


def test_every_whole_number_of_the_language_fits_into_its_column() -> None:
    found = dict(integers(schema_of(Scenario)))
    assert len(found) > 80
    for path, schema in found.items():
        assert schema.get("le", schema.get("lt", INT64 + 1)) <= INT64, path
        assert schema.get("ge", schema.get("gt", -INT64 - 2)) >= -INT64, path


@given(st.integers(INT32 + 1) | st.sampled_from([INT32 + 1, INT64, INT64 + 1, 2**64, 10**400]))
def test_replicas_beyond_their_column_are_refused(replicas: int) -> None:
    with pytest.raises(
        InputError, match="replicas: must be at most 2³¹ − 1, which is all that a column holds"
    ):
        small.scenario(replicas=replicas)
    with pytest.raises(InputError, match=r"replicas\.most: must be at most"):
        small.scenario(replicas={"until": {"metric": "relative_fitness", "width": 0.1}, "most": replicas})


@given(st.integers(INT64 + 1) | st.integers(max_value=-INT64 - 1))
def test_seeds_beyond_their_column_are_refused(seed: int) -> None:
    with pytest.raises(InputError, match="seed: must be at"):
        small.scenario(seed=seed)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "study.yaml").write_text(small.scenario(replicas=1).to_yaml())
    p2psim.run(small.scenario(replicas=1), folder / "run", progress=False)
    return folder


@pytest.mark.parametrize(
    ("cell", "replica"), [(0, INT32), (0, INT32 + 1), (0, INT64 + 1), (0, -1), (2, 0), (INT32 + 1, 0)]
)
@pytest.mark.parametrize("out", ["run", "new"])
def test_one_simulation_out_of_range_is_refused_before_anything_is_written(
    finished: Path, cell: int, replica: int, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = small.snapshot(finished)
    arguments = ["run", str(finished / "study.yaml"), "--out", str(finished / out), "--quiet"]
    try:
        code: object = main([*arguments, "--cell", str(cell), "--replica", str(replica)])
    except SystemExit as refused:  # by the parser of the command line
        code = refused.code
    assert code == 2
    assert re.search(r"(cell|replica): must be from 0 to (1|2147483646), got", capsys.readouterr().err)
    assert small.snapshot(finished) == before
    assert not (finished / "new").exists()
    assert main(arguments) == 0 if out == "run" else True


def test_the_largest_replica_is_stored(tmp_path: Path) -> None:
    p2psim.run(small.scenario(replicas=1, sweep={}), tmp_path, only=(0, INT32 - 1), progress=False)
    p2psim.run(small.scenario(replicas=1, sweep={}), tmp_path, progress=False)
    table = pq.read_table(tmp_path / "metrics.parquet")
    assert table.column("replica").unique().to_pylist() == [0, INT32 - 1]


def test_swept_numbers_that_no_column_holds_become_text() -> None:
    from p2psim.scenario.cells import cells, column_of, value_at

    scenario = cells(small.scenario(sweep={}))[0].scenario
    huge = scenario.model_copy(update={"seed": 2**70})
    assert column_of([value_at(cell, ("seed",)) for cell in (scenario, huge)]) == ["5", str(2**70)]
    assert column_of([value_at(cell, ("seed",)) for cell in (scenario, scenario)]) == [5, 5]


def test_numbers_of_very_many_agents_do_not_make_the_written_scenario_too_large_to_be_read() -> None:
    study = small.scenario()
    grid = cells(study)
    steps = [{"kind": "standardise", "mean": [0.5] * 400_000}, {"kind": "pca", "directions": [[1.0, 0.0]]}]
    scale = {"x": {"radius": 1.5, "each": [0.5] * 400_000}}
    numbers = {"records": list(range(400_000)), "features": steps, "scale": scale}
    by_cell = {cell.content: numbers for cell in grid}
    described = Manifest(study.name, study.identity(), 5, 3, "running", (), 0, fitted=by_cell)
    text = resolved_text(study, grid, described)
    assert Scenario.parse(text).fitted == {
        "features": [{"kind": "standardise"}, {"kind": "pca", "directions": [[1.0, 0.0]]}],
        "scale": {"x": {"radius": 1.5}},
    }


LEAVES = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
LISTS = st.lists(LEAVES, max_size=3).flatmap(lambda few: st.sampled_from([few, 400 * few, 1200 * few]))
TREES = st.dictionaries(
    st.text(max_size=3),
    st.recursive(LISTS | st.booleans(), lambda inner: st.lists(inner, max_size=3)),
    max_size=3,
)


@given(tree=st.dictionaries(st.text(max_size=3), TREES, max_size=3))
def test_a_list_with_an_entry_for_each_of_many_agents_is_written_as_any_other(tree: dict[str, Any]) -> None:
    assert indented(tree) == json.dumps(tree, indent=2, ensure_ascii=False)
