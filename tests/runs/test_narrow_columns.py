"""Batches hold counts in as few bytes as these need, and none for agents that there are not; tables are as ever."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.events import EVENT, event_table
from p2psim.runs.compaction import placed_runs
from p2psim.runs.manifest import CellEntry
from p2psim.runs.parquet import ROW_GROUP
from p2psim.runs.parts import encode
from p2psim.runs.tables import StoredTables, merge
from p2psim.simulation.outcome import Outcome, Series

#: The least number that does not fit into four bytes.
LARGE = 2**31


def outcome(steps: list[int], agent: int | None, seqs: list[int]) -> Outcome:
    """What a simulation gave that recorded these steps of one metric, and these events."""
    at = np.array(steps, np.int64)
    series = Series("main", "fitness", agent, at, at * 0.5, at * 2.0)
    events = np.zeros(len(seqs), EVENT)
    events["seq"], events["version"], events["cause"] = seqs, np.array(seqs) // 2, np.array(seqs) - 1
    columns = (event_table(events, brief=True),)
    none = {"agent": np.arange(0), "index": np.arange(0)}
    return Outcome("commits", (series,), none, none, columns, None, None, None, "data", ())


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([0, 1, LARGE - 1, LARGE, 2**50]), min_size=1, max_size=3),
            st.one_of(st.none(), st.integers(0, 5)),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_tables_do_not_depend_on_who_was_in_which_batch(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[list[int], int | None]]
) -> None:
    folder = tmp_path_factory.mktemp("narrow")
    simulated = [
        (("c" * 64, replica), outcome(sorted(steps), agent, sorted(steps)), 0.0)
        for replica, (steps, agent) in enumerate(runs)
    ]
    tables = []
    for batches in ([simulated], [[one] for one in simulated]):
        parts = [
            encode(batch, {}).put(folder / f"{len(tables)}-{number}") for number, batch in enumerate(batches)
        ]
        placed = placed_runs(
            [CellEntry("c" * 64, {}, ())], {key: part for part in parts for key in part.runs}
        )
        for name in ("metrics", "events"):
            path = Path(folder / f"{name}.parquet")
            merge(name, placed, {}, path)
            tables.append(pq.read_table(path))
    assert tables[0].equals(tables[2])
    assert tables[1].equals(tables[3])
    metrics, events = tables[:2]
    steps = [step for steps, _ in runs for step in sorted(steps)]
    assert metrics["step"].to_pylist() == events["seq"].to_pylist() == steps
    assert metrics["agent"].to_pylist() == [agent for steps, agent in runs for _ in steps]
    assert events["cause"].to_pylist() == [step - 1 for step in steps]
    kinds = [metrics.schema.field("step"), metrics.schema.field("agent"), events.schema.field("version")]
    assert [str(field.type) for field in kinds] == ["int64", "int32", "int64"]


@given(st.lists(st.integers(LARGE - 3, LARGE + 3), max_size=4))
def test_events_are_the_same_in_few_bytes(seqs: list[int]) -> None:
    events = np.zeros(len(seqs), EVENT)
    # Several runs may stand one after the other, so that the last event need not have the largest number.
    events["seq"] = seqs
    brief, plain = event_table(events, brief=True), event_table(events)
    assert brief.cast(plain.schema).equals(plain)
    assert (str(brief.schema.field("seq").type) == "int64") == any(seq >= LARGE for seq in seqs)


def memory_of_merging(folder: Path, parts: int, cells: int, rows: int) -> int:
    """Most bytes that Arrow has while simulations become a table, whose parts are of one replica each."""
    names = [f"{cell:064d}" for cell in range(cells)]
    one = outcome(list(range(rows)), None, [])
    stored = [
        encode([((name, replica), one, 0.0) for name in names], {}).put(folder / f"{cells}-{replica}")
        for replica in range(parts)
    ]
    placed = placed_runs(
        [CellEntry(name, {}, ()) for name in names], {key: part for part in stored for key in part.runs}
    )
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.system_memory_pool())
    pa.set_memory_pool(pool)
    try:
        merge("metrics", placed, {}, folder / "metrics.parquet")
    finally:
        pa.set_memory_pool(before)
    assert pq.read_metadata(folder / "metrics.parquet").num_rows == parts * cells * rows
    return pool.max_memory()


def test_merging_takes_the_memory_of_a_few_groups_however_the_rows_lie(tmp_path: Path) -> None:
    """Long simulations in parts of their own, and short ones whose neighbours are in other parts each."""
    row = 4 + 4 + 8 + 8 + 4 + 4 + 4 + 8 + 1
    for parts, cells, rows in ((30, 1, 100_000), (150, 100, 20)):
        most = memory_of_merging(tmp_path, parts, cells, rows)
        assert most < 6 * ROW_GROUP * row, (parts, most)


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 9), max_size=3), st.booleans(), st.none() | st.integers(0, 2)),
        min_size=1,
        max_size=4,
    )
)
def test_tables_that_are_merged_again_are_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[list[int], bool, int | None]]
) -> None:
    """Also those without any row, and where simulations have none of a kind."""
    folder, names = tmp_path_factory.mktemp("again"), ("metrics", "ledger", "agents", "events", "links")
    simulated = []
    for replica, (steps, has_events, links) in enumerate(runs):
        one = outcome(sorted(steps), None, sorted(steps))
        graph = None if links is None else {"a": np.arange(links), "b": np.arange(links)}
        one = replace(one, columns=one.columns if has_events else (), links=graph)
        simulated.append((("c" * 64, replica), one, 0.0))
    part = encode(simulated, {}).put(folder / "part")
    cells, source = [CellEntry("c" * 64, {}, ())], part
    for place in (folder / "first", folder / "second"):
        place.mkdir()
        placed = placed_runs(cells, dict.fromkeys(part.runs, source))
        written = [name for name in names if merge(name, placed, {}, place / f"{name}.parquet")]
        assert ("events" in written) == any(has_events for _, has_events, _ in runs)
        assert ("links" in written) == any(links is not None for *_, links in runs)
        source = StoredTables(place, ["c" * 64])
    for name in written:
        first, second = ((folder / place / f"{name}.parquet").read_bytes() for place in ("first", "second"))
        assert first == second, name
