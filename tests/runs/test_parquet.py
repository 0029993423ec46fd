"""Files that several threads pack have the bytes of one writer of pyarrow, which is the plain implementation here."""

import io
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.runs.parquet import packing, write_table

#: Of a group of its own each; more than 15, so that their number does not fit into the byte before a list.
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=40)
KINDS = ("float", "count", "alike", "nulls", "flag", "text")


def table(rows: int, seed: int, kinds: list[str], places: int) -> pa.Table:
    """Columns of these kinds, as often as there are places."""
    rng = np.random.default_rng(seed)
    columns = {
        "float": lambda: pa.array(rng.normal(size=rows)),
        "count": lambda: pa.array(rng.integers(-(2**62), 2**62, rows).cumsum()),
        "alike": lambda: pa.array(np.full(rows, 3, np.int32)),
        "nulls": lambda: pa.array(np.arange(rows, dtype=np.int32), mask=rng.random(rows) < 0.5),
        "flag": lambda: pa.array(rng.random(rows) < 0.5),
        "text": lambda: pa.DictionaryArray.from_arrays(
            pa.array(rng.integers(0, 3, rows), pa.int32()), pa.array(["", "ab" * 90, "ü"])
        ),
    }
    names = [f"{kind}{place}" for place in range(places) for kind in kinds]
    return pa.table({name: columns[name.rstrip("0123456789")]() for name in names})


def of_one_writer(whole: pa.Table, sizes: list[int], options: dict[str, object]) -> bytes:
    stream = io.BytesIO()
    with pq.ParquetWriter(stream, whole.schema, **options) as writer:
        first = 0
        for size in sizes:
            writer.write_table(whole.slice(first, size))
            first += size
    return stream.getvalue()


@given(SIZES, st.lists(st.sampled_from(KINDS), min_size=1, unique=True), st.integers(1, 4), st.integers(1, 4))
def test_the_bytes_are_those_of_one_writer(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], kinds: list[str], places: int, threads: int
) -> None:
    whole = table(sum(sizes), len(sizes), kinds, places)
    schema = whole.schema.with_metadata({"made": "by a test"})
    whole = whole.replace_schema_metadata(schema.metadata)
    path = tmp_path_factory.mktemp("parquet") / "table.parquet"
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    groups = [partial(whole.slice, first, size) for first, size in zip(starts, sizes, strict=True)]
    write_table(path, schema, iter(groups), packing(schema, ("alike0",)), threads)
    assert path.read_bytes() == of_one_writer(whole, sizes, packing(schema, ("alike0",)))
    assert pq.read_table(path).equals(whole)


def test_large_groups_and_none(tmp_path: Path) -> None:
    """Places beyond what two bytes hold; and a table without rows, which is one empty group."""
    for sizes in ([70_000, 70_000, 1], [0]):
        whole = table(sum(sizes), 0, ["float", "count", "text"], 1)
        groups = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        rows = (partial(whole.take, pa.array(group, pa.int64())) for group in groups)
        write_table(tmp_path / "table.parquet", whole.schema, rows, packing(whole.schema, ("alike0",)), 2)
        expected = of_one_writer(whole, sizes, packing(whole.schema, ("alike0",)))
        assert (tmp_path / "table.parquet").read_bytes() == expected


def test_what_goes_wrong_while_rows_are_made_is_told(tmp_path: Path) -> None:
    whole = table(10, 0, ["float"], 1)

    def failing() -> pa.Table:
        raise MemoryError("no room for rows")

    def groups():
        yield lambda: whole
        yield failing()

    options = packing(whole.schema, ("alike0",))
    for several in ([lambda: whole, failing, lambda: whole], groups()):
        with pytest.raises(MemoryError, match="no room for rows"):
            write_table(tmp_path / "table.parquet", whole.schema, several, options, 2)
