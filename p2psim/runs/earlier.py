"""The tables of a run folder that was finished before, as a source of rows for the next ones."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.runs.parts import RunKey

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a row group; smaller groups are read many times slower.
ROW_GROUP = 131_072


class Earlier:
    """The tables of a folder that was finished before, as a source of rows.

    Parameters
    ----------
    folder : Path
        The run folder.
    contents : sequence of str
        Content hash of each cell number that its tables use.
    """

    def __init__(self, folder: Path, contents: Sequence[str]):
        self.folder = folder
        self._numbers = {content: number for number, content in enumerate(contents)}
        self._places: dict[str, dict[tuple[int, int], tuple[int, int]]] = {}
        self._group = lru_cache(maxsize=4)(self._read_group)

    def _file(self, name: str) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.folder / f"{name}.parquet")

    def schema(self, name: str) -> "pa.Schema | None":
        """Schema of a table without cell, replica and swept columns; None when there is no such table."""
        import pyarrow as pa

        if not (self.folder / f"{name}.parquet").exists():
            return None
        with self._file(name) as file:
            schema = file.schema_arrow
        start = schema.get_field_index("replica") + 1
        return pa.schema([schema.field(i) for i in range(start, len(schema))])

    def place(self, name: str, key: RunKey) -> tuple[int, int] | None:
        """First row and number of rows of one simulation."""
        if name not in self._places:
            self._places[name] = self._find_places(name)
        return self._places[name].get((self._numbers[key[0]], key[1]))

    def _find_places(self, name: str) -> dict[tuple[int, int], tuple[int, int]]:
        if self.schema(name) is None:
            return {}
        places: dict[tuple[int, int], tuple[int, int]] = {}
        start = 0
        with self._file(name) as file:
            for batch in file.iter_batches(ROW_GROUP, columns=["cell", "replica"]):
                cell, replica = (batch.column(c).to_numpy() for c in ("cell", "replica"))
                edges = np.flatnonzero((np.diff(cell) != 0) | (np.diff(replica) != 0)) + 1
                for begin, end in zip([0, *edges], [*edges, len(cell)], strict=True):
                    if end == begin:
                        continue
                    run = (int(cell[begin]), int(replica[begin]))
                    first, rows = places.get(run, (start + int(begin), 0))
                    places[run] = (first, rows + int(end - begin))
                start += len(cell)
        return places

    def _read_group(self, name: str, group: int) -> "pa.Table":
        with self._file(name) as file:
            return file.read_row_group(group)

    def rows(self, name: str, start: int, count: int) -> "Iterator[pa.Table]":
        """Rows from `start` on, in pieces."""
        while count > 0:
            group, offset = divmod(start, ROW_GROUP)
            take = min(count, ROW_GROUP - offset)
            yield self._group(name, group).slice(offset, take)
            start, count = start + take, count - take

    def values(self, name: str, column: str) -> set[str]:
        """All values of a text column."""
        import pyarrow.compute as pc

        names: set[str] = set()
        with self._file(name) as file:
            for group in range(file.metadata.num_row_groups):
                read = file.read_row_group(group, columns=[column]).column(column)
                names.update(v for v in pc.unique(read).to_pylist() if v is not None)
        return names
