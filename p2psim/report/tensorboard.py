"""Writes a run for TensorBoard: each simulation becomes a run there, with its metrics, swept values and privacy.

The extra ``tensorboard`` is loaded when something is written. Event files have no date in them: the same run gives the
same bytes. The place of wall time is taken by simulated time, so that TensorBoard's axis *Relative* shows it.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core import files
from p2psim.core.errors import InputError, not_installed
from p2psim.core.files import path_of
from p2psim.core.printing import last_parts, markdown
from p2psim.report.source import where_defined

if TYPE_CHECKING:
    import pandas as pd

    from p2psim.runs.result import Result

#: TensorBoard looks for files with the middle word in their names.
FILE = "events.out.tfevents.p2psim"


def export(result: "Result", folder: Path) -> list[Path]:
    """Write the metrics of all simulations.

    Parameters
    ----------
    result : Result
    folder : Path
        Made if need be; must be empty.

    Returns
    -------
    list of Path
        One file for each cell and replica, in a folder of the cell and one of the replica.

    Raises
    ------
    MissingSourceError
        If TensorBoard is not installed.
    InputError
        If the folder is not empty, is a file, or cannot be made.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        raise not_installed("TensorBoard", "tensorboard") from None
    place = path_of("--out", folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"--out: {place} is not an empty folder; remove it, or choose another")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out: cannot make the folder {place}: {error.strerror or error}") from error
    privacy = result.summary()
    names = last_parts(result.swept)
    written = []
    simulation: Any
    for simulation, points in points_of(result.metrics).groupby(level=["cell", "replica"], sort=True):
        number, replica = simulation
        swept = {names[key]: value for key, value in result.described.cells[number].swept.items()}
        cell = "_".join([str(number), *(f"{name}={value}" for name, value in swept.items())])
        path = place / re.sub(r"[^\w.=+-]+", "-", cell)[:100].rstrip(".") / str(replica) / FILE
        path.parent.mkdir(parents=True)
        columns = ["model", "metric", "epsilon spent", "budget", "flags"]
        table = markdown(privacy.loc[privacy["cell"] == number, columns].astype(object).to_dict("records"))
        with files.aside(path) as temporary, open(temporary, "wb") as stream:
            writer = RecordWriter(stream)
            writer.write(Event(file_version="brain.Event:2").SerializeToString())
            for event in (_described(swept, cell, table), *_scalars(points)):
                writer.write(event.SerializeToString())
        written.append(path)
    return written


def points_of(metrics: "pd.DataFrame") -> "pd.Series[float]":
    """Values by cell, replica, step, time and tag, in this order; of metrics of single agents, the mean over agents.

    What is undefined, as shares of messages before any was sent, is left out: TensorBoard would draw no point either.
    """
    metrics = where_defined(metrics).dropna(subset="value")
    single = metrics["agent"].notna()
    tags: Any = metrics["metric"].astype(str) + np.where(single, " (mean over agents)", "")
    table = metrics.assign(tag=tags + "/" + metrics["model"].astype(str))
    return table.groupby(["cell", "replica", "step", "time", "tag"], sort=True)["value"].mean()


def _scalars(points: "pd.Series[float]") -> Iterator[Any]:
    """Events of the metrics of a simulation, one per recorded moment."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    rows = points.reset_index()[["step", "time", "tag", "value"]].itertuples(index=False, name=None)
    for (step, time), values in groupby(rows, key=lambda row: row[:2]):
        shown = [Summary.Value(tag=tag, simple_value=value) for *_, tag, value in values]
        yield Event(step=step, wall_time=time, summary=Summary(value=shown))


def _described(swept: Mapping[str, Any], cell: str, privacy: str) -> Any:
    """Event with the swept values, for the page *HParams*, and what the releases of the cell cost, for *Text*."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.plugins.hparams.metadata import PLUGIN_DATA_VERSION, SESSION_START_INFO_TAG
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionStartInfo

    # Replicas of a cell are one group, over which TensorBoard averages.
    start = SessionStartInfo(group_name=cell)
    for name, value in swept.items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
        elif isinstance(value, int | float) and np.isfinite(value):
            start.hparams[name].number_value = value
        else:  # a part, or an infinite number, which JSON has not
            start.hparams[name].string_value = str(value)
    content = HParamsPluginData(version=PLUGIN_DATA_VERSION, session_start_info=start).SerializeToString()

    def metadata(plugin: str, content: bytes = b"") -> Any:
        return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))

    text = TensorProto(dtype=DT_STRING, string_val=[privacy.encode()])
    values = [
        Summary.Value(tag=SESSION_START_INFO_TAG, metadata=metadata("hparams", content)),
        Summary.Value(tag="privacy", metadata=metadata("text"), tensor=text),
    ]
    return Event(summary=Summary(value=values))
