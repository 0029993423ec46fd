"""The last recorded value of one metric in each simulation, read from parts and from tables.

Of a metric that single agents have beside one that is of no agent, the latter; of one that they alone have, the mean
over them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from p2psim.study.parts import LISTING, Part, RunKey, StoredPart

if TYPE_CHECKING:
    import pyarrow as pa

    from p2psim.study.earlier import Earlier
    from p2psim.study.store import Content

_COLUMNS = ["step", "agent", "model", "metric", "value"]


def values_of_part(part: Part, metric: str, model: str) -> dict[RunKey, float]:
    """Values of a batch that has just ended; of what was not recorded none."""
    import pyarrow as pa

    rows = [run["rows"]["metrics"] for run in json.loads(part.files[LISTING])["runs"]]
    table = pa.ipc.open_file(pa.BufferReader(part.files["metrics.arrow"])).read_all()
    return _by_run(table, part.runs, np.repeat(np.arange(len(rows)), rows), metric, model)


def values_of_content(content: Content, metric: str, model: str) -> dict[RunKey, float]:
    """Values of all that a run folder holds."""
    found: dict[RunKey, float] = {}
    for part in content.parts:
        found.update(_of_stored(part, metric, model))
    if content.earlier is not None:
        found.update(_of_tables(content.earlier, list(content.manifest.stored), metric, model))
    return found


def _of_stored(part: StoredPart, metric: str, model: str) -> dict[RunKey, float]:
    table = part.table("metrics")
    if table is None:
        return {}
    keys = [key for key in part.runs if part.place("metrics", key) is not None]
    rows = [part.runs[key]["rows"]["metrics"] for key in keys]
    return _by_run(table, keys, np.repeat(np.arange(len(keys)), rows), metric, model)


def _of_tables(earlier: Earlier, contents: Sequence[str], metric: str, model: str) -> dict[RunKey, float]:
    import pyarrow.parquet as pq

    wanted = [("metric", "==", metric), ("model", "==", model)]
    table = pq.read_table(
        earlier.folder / "metrics.parquet", columns=["cell", "replica", *_COLUMNS], filters=wanted
    )
    if not table.num_rows:
        return {}
    runs = np.stack([table["cell"].to_numpy(), table["replica"].to_numpy()], axis=1)
    distinct, owner = np.unique(runs, axis=0, return_inverse=True)
    keys = [(contents[cell], int(replica)) for cell, replica in distinct]
    return _by_run(table, keys, owner.ravel(), metric, model)


def _by_run(
    table: pa.Table, keys: Sequence[RunKey], owner: np.ndarray, metric: str, model: str
) -> dict[RunKey, float]:
    """Last value of each run; ``owner`` says for each row whose it is."""
    import pyarrow.compute as pc

    wanted = pc.and_(pc.equal(table["metric"], metric), pc.equal(table["model"], model))
    of_none = pc.is_null(table["agent"])
    mask, alone = wanted.to_numpy(), of_none.to_numpy()
    step, value = table["step"].to_numpy(), table["value"].to_numpy()
    has_own = np.zeros(len(keys), dtype=bool)
    has_own[owner[mask & alone]] = True
    mask &= alone | ~has_own[owner]
    owner, step, value = owner[mask], step[mask], value[mask]
    last = np.full(len(keys), -1, dtype=np.int64)
    np.maximum.at(last, owner, step)
    is_last = step == last[owner]
    owner, value = owner[is_last], value[is_last]
    count = np.bincount(owner, minlength=len(keys))
    total = np.bincount(owner, weights=value, minlength=len(keys))
    return {keys[i]: float(total[i] / count[i]) for i in np.flatnonzero(count).tolist()}
