"""Data from the user's own files: CSV and Parquet, their fingerprints, and warnings about columns that are left out."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, sha256_of
from p2psim.core.text_tables import repeated
from p2psim.data.classes import check_number, labels_in, owners_of
from p2psim.data.columns import NotNumbersError, require
from p2psim.data.encoding import CategoryCode, Code, DateCode, begins_with_dates, coded, indicated, keeping
from p2psim.data.records import DataRequest, DataSource, Table
from p2psim.data.table_file import TableFile, read_csv, read_parquet


def fingerprint(path: str | Path) -> dict[str, object]:
    """SHA-256 of a file's contents, so that a run tells which data it was."""
    return {"sha256": sha256_of(Path(path).expanduser())}


def left_out_of(path: str | Path, names: Sequence[str]) -> tuple[str, ...]:
    """Warning that columns of a file are no features, if any are left out."""
    return (f"columns of {path} left out of the features: {', '.join(names)}",) if names else ()


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
    """Base of sources that are files of the user: one row per record.

    Choices
    -------
    categories: one-hot
        a feature for each category, 1 where a row has it and 0 elsewhere
    categories: ordinal
        the place of the category in the list, from 0
    dates: years
        the year with its elapsed fraction
    dates: days
        days since 1970-01-01
    missing: refuse
        an error, as without the key
    missing: drop
        rows with a missing value in y or a feature are left out
    missing: mean
        the mean of the column on the public rows
    missing: median
        the median of the column on the public rows
    """

    citation: ClassVar[str] = "yours"
    licence: ClassVar[str] = "yours"
    needs: ClassVar[str] = "path: the file"
    unsaid: ClassVar[tuple[str, ...]] = ("test_path", "categories", "dates", "missing", "indicator")

    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    test_path: DataPath | None = Field(
        None,
        description="a file with the same columns, whose records are for tests only: with a partition by column each "
        "owner tests with its own, else all owners get the same number in turn",
    )
    y: str = Field(description="column of labels: numbers, or with data.classes anything that names a class")
    x: list[str] | None = Field(
        None,
        description="columns of features; left out, all others that hold numbers (or categories or dates, with these "
        "keys) but the partition's, and what is no feature is named in a warning",
    )
    categories: CategoryCode | dict[str, CategoryCode] | None = Field(
        None,
        description="what categories become: for all columns of text, or for the columns of a mapping; their list is "
        "public",
    )
    dates: DateCode | dict[str, DateCode] | None = Field(
        None,
        description="what ISO 8601 dates become: for all columns of dates, or for the columns of a mapping",
    )
    missing: Literal["refuse", "drop", "mean", "median"] | None = Field(
        None,
        description="what happens to missing values; left out, they are refused. With mean and median a missing "
        "category is 0 in all its features (one-hot) or −1 (ordinal)",
    )
    indicator: bool | None = Field(
        None,
        description="true: a further feature for each column with missing values, 1 where one is missing",
    )

    @abstractmethod
    def read(self, path: str, key: str) -> TableFile:
        """Read one of the files."""

    def _rows(self) -> tuple[TableFile, int]:
        """All rows, and how many of them, the last, are test records."""
        file = self.read(self.path, "data.source.path")
        if not file.table.num_rows:
            raise MeaningError("data.source.path", f"{file.place} has no rows")
        if self.test_path is None:
            return file, 0
        key = "data.source.test_path"
        tests = self.read(self.test_path, key)
        if not tests.table.num_rows:
            raise MeaningError(key, f"{tests.place} has no rows")
        return file.followed_by(tests, key), tests.table.num_rows

    def load(self, request: DataRequest) -> Table:
        """Read the file.

        Features are `x`, or every other column that holds numbers, or what the keys say becomes numbers, except that
        which the partition goes by. Columns that are left out then are named in a warning.

        Raises
        ------
        MeaningError
            If a column is not there, is text that no key turns into numbers, or has missing values that no key fills,
            or infinite ones; if there are no features or no rows, or the column of the partition is to be a feature.
        """
        file, tests = self._rows()
        require(file, self.y, "data.source.y")
        codes, parts, warnings = self._coded(file, request.held_by, request.per_owner)
        x = [code.column for code in codes]
        missing = {code.column: np.isnan(part[:, 0]) for code, part in zip(codes, parts, strict=True)}
        missing = {name: gaps for name, gaps in missing.items() if gaps.any()}
        used = (self.y, request.held_by, *request.per_owner, *x)
        dropped = [name for name in file if name not in used]
        notes: dict[str, object] = {"columns": x, "dropped": dropped, **fingerprint(file.place)}
        if self.test_path is not None:
            notes["test_sha256"] = fingerprint(self.test_path)["sha256"]
        if other := {code.column: code.note for code in codes if code.kind != "number"}:
            notes["codes"] = other
        rule = self.missing or "refuse"
        if self.indicator and rule in ("refuse", "drop"):
            raise MeaningError("data.source.indicator", "needs data.source.missing: mean or median")
        if rule == "refuse":
            for name, gaps in missing.items():
                file.refuse(gaps, name, "data.source.x", "; data.source.missing may be drop, mean or median")
        elif missing:
            notes["missing"] = {name: int(gaps.sum()) for name, gaps in missing.items()}
        if rule == "drop":
            gaps = np.any([self._no_label(file, request.classes), *missing.values()], axis=0)
            if gaps.all():
                raise MeaningError("data.source.missing", f"drop leaves no row of {file.place}")
            if gaps.any():
                notes["rows_dropped"] = int(gaps.sum())
                warnings += (f"{gaps.sum()} of {gaps.size} rows are left out, since a value is missing",)
                tests -= int(gaps[gaps.size - tests :].sum())
                file, parts = file.keep(~gaps), [part[~gaps] for part in parts]
            missing = {}
        names = [name for code in codes for name in code.names]
        parts = [code.without_gaps(part) for code, part in zip(codes, parts, strict=True)]
        if self.indicator:
            notes["indicators"] = list(missing)
            names += map(indicated, missing)
            parts += [gaps[:, None].astype(float) for gaps in missing.values()]
        if request.classes:
            labels, classes = _classes(file, self.y)
        else:
            commas = file.holds_decimal_commas(self.y)
            hint = _keeping(file, [self.y]) if commas else "; if labels are classes, give data.classes: all"
            labels, classes = file.finite([self.y], "data.source.y", hint=hint)[:, 0], ()
        return Table(
            X=np.hstack(parts),
            y=labels,
            names=tuple(names),
            columns=file,
            notes=notes,
            warnings=warnings,
            where=file.where,
            classes=classes,
            fill=rule if rule in ("mean", "median") else None,
            tests=tests,
            numbers={name: file.finite([name], "data.per_owner")[:, 0] for name in request.per_owner},
        )

    def _coded(
        self, file: TableFile, held_by: str | None, per_owner: Sequence[str]
    ) -> tuple[list[Code], list[np.ndarray], tuple[str, ...]]:
        """What columns become, their features, and a warning of those that are left out."""
        key, x, y = "data.source.x", self.x, self.y
        apart = (y, held_by, *per_owner)
        wanted: dict[str, tuple[str, str]] = {}
        for which, entries in (("dates", self.dates), ("categories", self.categories)):
            for name, kind in entries.items() if isinstance(entries, dict) else ():
                place = f"data.source.{which}.{name}"
                require(file, name, place)
                if name in wanted or name in apart or (x is not None and name not in x):
                    raise MeaningError(
                        place,
                        f"{name!r} must be a feature (data.source.x), and become dates or categories, not both",
                    )
                wanted[name] = place, kind
        if x is not None and (again := repeated(x)) is not None:
            raise MeaningError(f"{key}.{again}", f"{x[again]} is named twice")
        if y in (x or ()):
            raise MeaningError(key, f"y ({y!r}) cannot be a feature as well")
        if held_by in (x or ()):
            message = f"{held_by!r} says who holds a row (data.partition.column), so it is no feature"
            raise MeaningError(key, message)
        if (again := repeated(per_owner)) is not None:
            raise MeaningError(f"data.per_owner.{again}", f"{per_owner[again]} is named twice")
        for name in per_owner:
            require(file, name, "data.per_owner")
            if name == y or name in (x or ()):
                message = f"{name!r} holds a number per owner, so it is neither y nor in data.source.x"
                raise MeaningError("data.per_owner", message)
        codes, parts, why = [], [], {}
        for name in file if x is None else x:
            if x is None and name in apart:
                continue
            if x is None and name in file.index and name not in wanted:
                why[name] = "numbers the rows"
                continue
            require(file, name, key)
            try:
                code, part = self._code(file, name, wanted[name][1] if name in wanted else None)
            except NotNumbersError as error:
                if name in wanted or x is not None:
                    given_value = (
                        f"it holds {error}" if error.row is None else f"{file.where(error.row)} has {error}"
                    )
                    hint = "" if name in wanted else _keeping(file, [name])
                    place, what = wanted.get(name, (key, ""))
                    must = f"become {what}" if what else "hold numbers"
                    raise MeaningError(place, f"column {name!r} must {must}; {given_value}{hint}") from None
                place = "" if error.row is None else f" in {file.where_inside(error.row)}"
                why[name] = f"{error.what}{place}"
                continue
            if x is None and np.isnan(part).all():
                why[name] = "no values"
                continue
            file.refuse(np.isinf(part).any(axis=1), name, key)
            codes.append(code)
            parts.append(part)
        warnings = left_out_of(file.place, [f"{name} ({reason})" for name, reason in why.items()])
        if warnings:
            warnings = (warnings[0] + _keeping(file, [name for name in why if name not in file.index]),)
        if not codes:
            raise MeaningError(
                key, "; ".join(("there must be at least one column of numbers beside y", *warnings))
            )
        return codes, parts, warnings

    def _code(self, file: TableFile, name: str, wanted: str | None) -> tuple[Code, np.ndarray]:
        """What a column becomes: what it is said to, else numbers, or what all columns become."""
        column = file.table[name]
        if wanted is not None:
            return coded(column, name, wanted)
        try:
            return Code(name), file.numbers(name)[:, None]
        except NotNumbersError as error:
            refusal = error
        if isinstance(self.categories, str) and file.holds_decimal_commas(name):
            message = f"column {name!r} holds numbers with a decimal comma{_keeping(file, [name])}"
            raise MeaningError("data.source.categories", f"{message}; or name the columns of categories")
        for kind in (self.dates, self.categories):
            if isinstance(kind, str):
                try:
                    return coded(column, name, kind)
                except NotNumbersError as error:
                    if kind == self.dates and error.row is not None and begins_with_dates(column, error.row):
                        raise
        raise refusal

    def _no_label(self, file: TableFile, classes: bool) -> np.ndarray:
        """Rows without a label."""
        import pandas as pd

        try:
            labels = labels_in(file.table[self.y]) if classes else file.numbers(self.y)
        except NotNumbersError:  # who reads the labels refuses them
            return np.zeros(file.table.num_rows, dtype=bool)
        return np.asarray(pd.isna(labels))


def _keeping(file: TableFile, names: Sequence[str]) -> str:
    """Say which options would keep columns that hold no numbers."""
    commas = [name for name in names if file.holds_decimal_commas(name)]
    mark = f'; decimal: "," makes numbers of {", ".join(commas)}' if commas else ""
    return mark + keeping((name, file.table[name]) for name in names if name not in commas)


class CSVFile(TableSource):
    """A CSV file: one row per record.

    Choices
    -------
    decimal: .
        a decimal point, as without the key
    decimal: ,
        a decimal comma; a number that holds a point is refused
    """

    about: ClassVar[str] = "your own CSV file; y and x are columns"
    unsaid: ClassVar[tuple[str, ...]] = (*TableSource.unsaid, "separator", "decimal")
    kind: Literal["csv"] = "csv"
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="what separates fields, such as ; or a tab (\\t); left out, a comma"
    )
    decimal: Literal[".", ","] | None = Field(None, description="decimal mark; left out, a point")

    @model_validator(mode="after")
    def _marks_differ(self) -> Self:
        if self.separator is not None and self.separator == self.decimal:
            raise ValueError(
                f"decimal: {self.decimal!r} is the separator, too; leave separator out if numbers stand in quotation "
                "marks"
            )
        return self

    def read(self, path: str, key: str) -> TableFile:
        """Read the file, as text."""
        return read_csv(path, key, delimiter=self.separator or ",", decimal=self.decimal or ".")


class ParquetFile(TableSource):
    """A Parquet file: one row per record."""

    about: ClassVar[str] = "your own Parquet file; y and x are columns"
    kind: Literal["parquet"] = "parquet"

    def read(self, path: str, key: str) -> TableFile:
        """Read the file."""
        return read_parquet(path, key)
