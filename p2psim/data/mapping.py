"""New records, mapped as a preparation mapped those that a model was learnt from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2psim.core.errors import InputError, first_line
from p2psim.data.columns import MISSING_CATEGORY, NotNumbersError, encode
from p2psim.data.encoding import Code, indicated
from p2psim.data.records import row_name
from p2psim.data.scaling import l1_norms, pull_within
from p2psim.data.section import DataSection


@dataclass(frozen=True)
class RecordMap:
    """What makes features of records in original units, and numbers in original units of labels.

    Attributes
    ----------
    section : DataSection
    fitted : mapping
        What the preparation found, as the manifest of a run keeps it (`preparation`).
    """

    section: DataSection
    fitted: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that records have; none where the source names none."""
        return tuple(self._source.get("columns", ()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns once categories, dates and missing values are numbers; `columns` where all are."""
        encoded = (name for code in self._codes for name in code.names)
        return (*encoded, *map(indicated, self._source.get("indicators", ())))

    @property
    def _source(self) -> Mapping[str, Any]:
        return self.fitted["source"]

    @property
    def _codes(self) -> list[Code]:
        noted = self._source.get("codes", {})
        return [Code.noted(name, noted.get(name)) for name in self.columns]

    def __call__(self, records: Any, within: bool = True) -> np.ndarray:
        """Features of records, shape (n, p), without an intercept.

        Parameters
        ----------
        records : pandas.DataFrame or array_like, shape (n, columns)
            A frame is read by the names of its columns; others, such as the label, are left alone. An array has the
            columns `names`.
        within : bool
            Pull records onto the ball of ``data.scale.x``, as the preparation does; without, the map is linear.

        Raises
        ------
        InputError
            If a column is missing, holds no numbers or an unknown category, or there are too few or too many columns.
        """
        rows = self.encoded(records)
        names = self.names or tuple(map(str, range(rows.shape[1])))
        if rows.shape[1] != len(names):
            frame = "; a pandas.DataFrame may have the file's columns" if self.names != self.columns else ""
            raise InputError(f"records: {len(names)} columns are expected, got {rows.shape[1]}{frame}")
        for step, numbers in zip(self.section.features, self.fitted.get("features", ()), strict=True):
            if not self.columns and numbers.get("dropped"):
                raise InputError("records: the run does not say which of its unnamed columns were constant")
            rows = step.restored(numbers, names)(rows)
            names = tuple(numbers["names"])
        if (scale := self.section.scale.x) is not None:
            radius = self.fitted["scale"]["x"]["radius"]
            norms = l1_norms(rows)[:, None] if radius == "each-record" else np.full((len(rows), 1), radius)
            rows = np.divide(rows * scale.bound, norms, out=np.zeros_like(rows), where=norms > 0)
            if within:
                pull_within(rows, scale.bound)
        return rows

    def encoded(self, records: Any) -> np.ndarray:
        """Records as numbers, shape (n, len(names)): categories, dates and missing values as the run had them."""
        if not hasattr(records, "columns"):
            rows = _plain_numbers(records)
            if rows.ndim != 2:
                raise InputError(f"records: a row for each is expected, got an array of shape {rows.shape}")
        elif not records.columns.is_unique:
            raise InputError("records: two columns have the same name")
        elif missing := [name for name in self.columns if name not in records.columns]:
            raise InputError(f"records: columns are missing: {', '.join(missing)}")
        elif not self.columns:
            rows = _plain_numbers(records.to_numpy())
        elif (known := self._source.get("categories")) is not None:
            rows = self._of_packaged(records, known)
        else:
            rows = self._of_file(records)
        if rows.shape[1] == len(self.names):
            for name, value in self._source.get("filled", {}).items():
                column = rows[:, self.names.index(name)]
                column[np.isnan(column)] = value
        if not np.isfinite(rows).all():
            raise InputError("records: must hold finite numbers")
        return rows

    def _of_packaged(self, records: Any, known: Mapping[str, list[str]]) -> np.ndarray:
        others = [name for name in self.columns if name not in known]
        numbers, notes = encode(records[others], "records")
        if unknown := list(notes["categories"]):  # type: ignore[call-overload]
            raise InputError(f"records: column {unknown[0]!r} must hold numbers, as in the run")
        by_name = dict(zip(others, numbers.T, strict=True))
        by_name |= {name: _places(records[name], known[name]) for name in known if name in self.columns}
        return np.column_stack([by_name[name] for name in self.columns])

    def _of_file(self, records: Any) -> np.ndarray:
        """Numbers of the columns of a file, NaN where the run fills."""
        import pyarrow as pa

        fills = getattr(self.section.source, "missing", None) in ("mean", "median")
        parts, gaps = [], {}
        for code in self._codes:
            try:
                column = pa.chunked_array([pa.array(records[code.column], from_pandas=True)])
                part = code.features(column)
            except (pa.ArrowException, NotNumbersError) as error:
                row = getattr(error, "row", None)
                place = "" if row is None else f" in {row_name(row)}"
                what = "hold numbers" if code.kind == "number" else f"become {code.kind}"
                raise InputError(
                    f"records: column {code.column!r} must {what}, as in the run; it holds {first_line(error)}{place}"
                ) from None
            gaps[code.column] = np.isnan(part[:, :1])
            parts.append(code.without_gaps(part) if fills else part)
        parts += [gaps[name].astype(float) for name in self._source.get("indicators", ())]
        return np.hstack(parts)

    def labels(self, values: np.ndarray) -> np.ndarray:
        """What a model says, in the units of the labels as the source has them, shape (n,)."""
        if (scale := self.section.scale.y) is None:
            return values
        numbers = self.fitted["scale"]["y"]
        return np.asarray(values * (numbers["divisor"] / scale.bound) + numbers["mean"])


def _places(series: Any, categories: list[str]) -> np.ndarray:
    """Places of categories as `p2psim.data.columns.encode` counted them in the run."""
    absent = series.isna().to_numpy()
    text = [str(value).strip() for value in series.to_numpy(dtype=object)[~absent]]
    places = {name: float(place) for place, name in enumerate(categories)}
    if unknown := sorted({*text} - places.keys()):
        message = f"records: column {series.name!r} holds {unknown[0]!r}, which is no category of the run"
        raise InputError(message)
    values = np.full(len(series), MISSING_CATEGORY)
    values[~absent] = [places[word] for word in text]
    return values


def _plain_numbers(records: Any) -> np.ndarray:
    """An array of real numbers, none of them hidden."""
    try:
        array = np.asanyarray(records)
        if np.iscomplexobj(array) or np.ma.isMaskedArray(array):
            message = f"records: real numbers are expected, got {type(array).__name__} of {array.dtype}"
            raise InputError(message)
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        message = "must hold numbers, in rows of the same length; columns with names are a pandas.DataFrame"
        raise InputError(f"records: {message}") from None
