"""Data from the user's own files: CSV and Parquet, their fingerprints, and warnings about columns that are left out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, sha256_of
from p2psim.core.text_tables import repeated
from p2psim.data.classes import check_number
from p2psim.data.columns import NotNumbersError, require
from p2psim.data.labels import labels_in, owners_of
from p2psim.data.records import DataRequest, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.table_file import TableFile, read_csv, read_parquet


def fingerprint(path: str | Path) -> dict[str, object]:
    """SHA-256 of a file's contents, so that a run tells which data it was."""
    return {"sha256": sha256_of(Path(path).expanduser())}


def left_out_of(path: str | Path, names: Sequence[str]) -> tuple[str, ...]:
    """Warning that columns of a file are no features, if any are left out."""
    return (f"columns of {path} left out of the features: {', '.join(names)}",) if names else ()


def _features(
    file: TableFile, others: tuple[str | None, ...]
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Columns of numbers beside `others`; and columns that are none, with the reason."""
    known, why = {}, {}
    for name in file:
        if name in others:
            continue
        if name in file.index:
            why[name] = "numbers the rows"
            continue
        try:
            values = file.numbers(name)
        except NotNumbersError as error:
            why[name] = error.what if error.row is None else f"{error.what} in {file.where_inside(error.row)}"
            continue
        if np.isnan(values).all():
            why[name] = "no values"
        else:
            known[name] = values
    return known, why


def _classes(file: TableFile, y: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels that are classes, as written: the number of each row's class, and the names."""
    key = "data.source.y"
    try:
        written = labels_in(file.table[y])
    except NotNumbersError as error:
        raise MeaningError(key, f"column {y!r} holds {error}, which names no class") from None
    numbers, names = owners_of(written, key, lambda marked: file.where(int(np.argmax(marked))))
    check_number(names)
    return numbers.astype(float), names


class TableSource(DataSource):
    """Base of sources that are files of the user: one row a record, numbers without gaps."""

    citation: ClassVar[str] = "yours"
    licence: ClassVar[str] = "yours"
    needs: ClassVar[str] = "path: the file"

    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    y: str = Field(description="column of labels: numbers, or with data.classes anything that names a class")
    x: list[str] | None = Field(
        None,
        description="columns of features; left out, all others of numbers but the partition's, and what is no feature "
        "is named in a warning",
    )

    read: ClassVar[Callable[[str, str], TableFile]]

    def load(self, request: DataRequest) -> Table:
        """Read the file.

        Features are `x`, or every other column that holds numbers, except that which the partition goes by. Columns
        that are left out then are named in a warning.

        Raises
        ------
        MeaningError
            If a column is not there, is text, or has missing or infinite values; if there are no
            features or no rows, or the column of the partition is to be a feature.
        """
        file, y, x = type(self).read(self.path, "data.source.path"), self.y, self.x
        if not file.table.num_rows:
            raise MeaningError("data.source.path", f"{file.place} has no rows")
        require(file, y, "data.source.y")
        known: dict[str, np.ndarray] = {}
        why: dict[str, str] = {}
        if x is None:
            known, why = _features(file, (y, request.held_by))
            x = list(known)
        warnings = left_out_of(file.place, [f"{name} ({reason})" for name, reason in why.items()])
        if not x:
            raise MeaningError(
                "data.source.x",
                "; ".join(("there must be at least one column of numbers beside y", *warnings)),
            )
        if (again := repeated(x)) is not None:
            raise MeaningError(f"data.source.x.{again}", f"{x[again]} is named twice")
        if y in x:
            raise MeaningError("data.source.x", f"y ({y!r}) cannot be a feature as well")
        if request.held_by in x:
            raise MeaningError(
                "data.source.x",
                f"{request.held_by!r} says who holds a row (data.partition.column), so it is no feature",
            )
        X = file.finite(x, "data.source.x", known)
        if request.classes:
            labels, classes = _classes(file, y)
        else:
            hint = "; if labels are classes, give data.classes: all"
            labels, classes = file.finite([y], "data.source.y", hint=hint)[:, 0], ()
        return Table(
            X=X,
            y=labels,
            names=tuple(x),
            columns=file,
            notes={
                "columns": list(x),
                "dropped": [name for name in file if name not in (y, request.held_by, *x)],
                **fingerprint(file.place),
            },
            warnings=warnings,
            where=file.where,
            classes=classes,
        )


class CSVFile(TableSource):
    """A CSV file: one row a record, numbers without gaps."""

    about: ClassVar[str] = "your own CSV file; y and x are columns"
    kind: Literal["csv"] = "csv"
    read: ClassVar[Callable[[str, str], TableFile]] = read_csv


class ParquetFile(TableSource):
    """A Parquet file: one row a record, numbers without gaps."""

    about: ClassVar[str] = "your own Parquet file; y and x are columns"
    kind: Literal["parquet"] = "parquet"
    read: ClassVar[Callable[[str, str], TableFile]] = read_parquet
