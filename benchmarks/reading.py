"""Measure how long ten million rows of metrics take to be read, and their median by cell and step, and in what memory.

    python benchmarks/reading.py [--smoke] [--rounds 3]

The table is written by p2psim's own writer, so that groups, dictionaries and encodings are those of a run folder. Each
reader is a process of its own, and finds the file in the cache of the operating system: pandas, DuckDB and Polars as
docs/sweeps.md shows them; ``Result.metrics``, which reads every column; and ``Result.curves``. Wall time, imports left
out; memory is the peak above that of the process with its libraries.
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from measuring import Row, child, rounds, spread, table

#: Measurements by name, one a round.
Found = dict[str, list[float]]

STEPS, REPLICAS = 1000, 100


def write(folder: Path, rows: int) -> Path:
    """The table of a sweep with so many values of one metric."""
    import numpy as np
    import pyarrow as pa

    from p2psim.runs.parts import TABLES, RunKey, StoredPart
    from p2psim.runs.tables import Placed, Source, merge

    cells = max(1, rows // (STEPS * REPLICAS))
    rng, of_none = np.random.default_rng(0), pa.nulls(STEPS * REPLICAS, pa.int32())
    zeros = pa.array(np.zeros(STEPS * REPLICAS, np.int32))
    keys, parts = list[RunKey](), list[Source]()
    for cell in range(cells):
        columns = {
            "step": np.tile(np.arange(1, STEPS + 1), REPLICAS),
            "time": rng.exponential(size=(REPLICAS, STEPS)).cumsum(axis=1).ravel(),
            "agent": of_none,
            "model": pa.DictionaryArray.from_arrays(zeros, pa.array(["main"])),
            "metric": pa.DictionaryArray.from_arrays(zeros, pa.array(["relative_fitness"])),
            "value": rng.exponential(size=STEPS * REPLICAS),
        }
        of_cell = [(str(cell), replica) for replica in range(REPLICAS)]
        counts = dict.fromkeys(TABLES, -1) | {"metrics": STEPS}
        part = StoredPart(folder / str(cell), {key: {"rows": counts} for key in of_cell}, {})
        part.path.mkdir()
        made = pa.table(columns)
        with pa.ipc.new_file(str(part.path / "metrics.arrow"), made.schema) as writer:
            writer.write_table(made)
        keys += of_cell
        parts.append(part)
    path, numbers = folder / "metrics.parquet", np.arange(cells * REPLICAS, dtype=np.int32)
    runs = Placed(keys, numbers // REPLICAS, numbers % REPLICAS, parts, numbers // REPLICAS)
    merge("metrics", runs, {"privacy.epsilon": [1.0 + cell for cell in range(cells)]}, path)
    return path


def with_pandas(path: Path) -> Callable[[], object]:
    """Three columns of the file."""
    import pandas as pd
    import pyarrow.dataset  # noqa: F401 - pandas imports it when it reads

    def read() -> object:
        metrics = pd.read_parquet(
            path,
            columns=["privacy.epsilon", "step", "value"],
            filters=[("metric", "==", "relative_fitness")],
        )
        return metrics.groupby(["privacy.epsilon", "step"])["value"].median()

    return read


def with_result(path: Path) -> Callable[[], object]:
    """All columns, with pandas."""
    import pandas as pd  # noqa: F401
    import pyarrow.dataset  # noqa: F401

    from p2psim.runs.result import Result

    def read() -> object:
        # A table without a run around it: there is no manifest to hold it against.
        described = SimpleNamespace(files={})
        metrics = Result(path.parent, described)._table("metrics")  # type: ignore[arg-type]
        return metrics.groupby(["privacy.epsilon", "step"])["value"].median()

    return read


def with_curves(path: Path) -> Callable[[], object]:
    """What ``Result.curves`` does, cell by cell."""
    from p2psim.runs.curves import curves

    return lambda: curves(path, "relative_fitness", (0.5,), "step", False)


def with_duckdb(path: Path) -> Callable[[], object]:
    """SQL on the file."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    query = f"""
        SELECT "privacy.epsilon", step, median(value) AS value
        FROM '{path}'
        WHERE metric = 'relative_fitness'
        GROUP BY ALL ORDER BY ALL
    """
    return lambda: connection.sql(query).fetchnumpy()["value"]


def with_polars(path: Path) -> Callable[[], object]:
    """A lazy frame."""
    import polars as pl

    return lambda: (
        pl.scan_parquet(path)
        .filter(pl.col("metric") == "relative_fitness")
        .group_by("privacy.epsilon", "step")
        .agg(pl.col("value").median())
        .collect()
    )


READERS = {
    "pandas": with_pandas,
    "Result": with_result,
    "curves": with_curves,
    "DuckDB": with_duckdb,
    "Polars": with_polars,
}


def peak() -> float:
    """Most memory of this process so far, MB."""
    from p2psim.runs.invocations import peak_memory

    return peak_memory() / 1e6


def reading(reader: str, path: Path, rows: int) -> dict[str, float]:
    """Seconds and megabytes of one reader."""
    read = READERS[reader](path)
    before, began = peak(), time.perf_counter()
    found = read()
    seconds = time.perf_counter() - began
    assert len(found) == max(1, rows // (STEPS * REPLICAS)) * STEPS  # type: ignore[arg-type]
    return {"s": seconds, "mb": peak() - before}


def measure(most: int, rows: int) -> Found:
    """Every reader, round by round."""
    found: Found = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), rows)
        found["mb"] = [path.stat().st_size / 1e6]
        for _ in rounds(most):
            for reader in READERS:
                for what, value in child(
                    "reading.py", "--worker", reader, "--size", rows, "--file", path
                ).items():
                    found[f"{reader} {what}"].append(value)
    return found


def measured(most: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    rows = 100_000 if smoke else 10_000_000
    found = measure(most, rows)
    told: list[Row] = [(f"{rows:,} rows of metrics, MB", spread(found["mb"], 0), "")]
    for reader in READERS:
        what = f"{rows:,} rows, medians by cell and step: {reader}"
        told.append((f"{what}, s", spread(found[f"{reader} s"]), "seconds"))
        told.append((f"{what}, MB of memory", spread(found[f"{reader} mb"], 0), ""))
    return found, told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        print(json.dumps(reading(asked.worker, asked.file, asked.size)))
    else:
        print(table(measured(1 if asked.smoke else asked.rounds, asked.smoke)[1]))


if __name__ == "__main__":
    main()
