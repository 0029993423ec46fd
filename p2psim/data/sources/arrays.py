"""Arrays that a Python program hands over; a scenario file cannot write them."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, InstanceOf, PlainSerializer, WithJsonSchema

from p2psim.core.errors import MeaningError, first_line
from p2psim.data.columns import check_finite
from p2psim.data.records import DataRequest, DataSource, Held, Table, offsets_of


@dataclass(frozen=True)
class Records:
    """Records in memory, compared and written down by a digest of their contents.

    Attributes
    ----------
    X : ndarray of float64, shape (n, p)
    y : ndarray of float64, shape (n,)
    owner : ndarray, shape (n,), or None
        Who holds each row, for rows in any order.
    offsets : ndarray of int64, shape (N + 1,), or None
        Who holds which rows, for rows owner by owner.
    labels : tuple of str
        Names of the N owners, with `offsets`.
    digest : str
    """

    X: np.ndarray = field(compare=False)
    y: np.ndarray = field(compare=False)
    owner: np.ndarray | None = field(compare=False)
    offsets: np.ndarray | None = field(compare=False)
    labels: tuple[str, ...] = field(compare=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(str((self.X.shape, self.labels)).encode())
        for array in (self.X, self.y, self.offsets):
            if array is not None:
                array.flags.writeable = False
                digest.update(array.tobytes())
        if self.owner is not None:
            self.owner.flags.writeable = False
            digest.update(str(self.owner.tolist()).encode())
        object.__setattr__(self, "digest", digest.hexdigest())


def _only_in_python(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(
            "arrays are given in Python, and only their hash is written here; with the same arrays, in Python, "
            "p2psim.run(scenario, folder) continues a run and verify_result(result, scenario) of "
            "p2psim.runs.verification verifies it"
        )
    if not isinstance(value, Records):
        raise ValueError("arrays are given in Python; a scenario file can name a csv or a parquet source")
    return value


class Arrays(DataSource):
    """Arrays, from Python only: `per_agent` and `rows` make it."""

    about: ClassVar[str] = "arrays from Python: one pair per agent, or X, y and an owner for each row"
    citation: ClassVar[str] = "yours"
    licence: ClassVar[str] = "yours"
    needs: ClassVar[str] = "the Python interface"

    kind: Literal["arrays"] = "arrays"
    records: Annotated[
        InstanceOf[Records] | None,
        BeforeValidator(_only_in_python),
        PlainSerializer(lambda records: records.digest, return_type=str),
        WithJsonSchema({"type": "string", "description": "digest of arrays given in Python"}),
    ] = Field(None, validate_default=True, description="given in Python only; written down as a digest")

    @classmethod
    def per_agent(
        cls, X: Sequence[np.ndarray], y: Sequence[np.ndarray], labels: Sequence[str] | None = None
    ) -> "Arrays":
        """Take the records of each agent.

        Parameters
        ----------
        X : sequence of N arrays, shape (n_i, p)
        y : sequence of N arrays, shape (n_i,)
        labels : sequence of str, optional
            Names of the agents; their numbers when left out.

        Raises
        ------
        MeaningError
            If shapes do not fit, an agent has no record, or a value is not finite.
        """
        X, y = (list(given) if isinstance(given, Iterable) else [] for given in (X, y))
        if not len(X) or len(X) != len(y):
            raise MeaningError("data.source", f"X and y need one array per agent, got {len(X)} and {len(y)}")
        pairs = [_pair(a, b, f"agent {i}: ") for i, (a, b) in enumerate(zip(X, y, strict=True))]
        if len({a.shape[1] for a, _ in pairs}) > 1:
            raise MeaningError("data.source", "all agents must have the same number of features")
        names = tuple(map(str, labels if labels is not None else range(len(pairs))))
        if len(names) != len(pairs) or len(set(names)) != len(names):
            raise MeaningError("data.source", f"labels must be {len(pairs)} different names, got {names}")
        offsets = offsets_of([len(b) for _, b in pairs])
        together = np.vstack([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])
        return cls(records=Records(*together, None, offsets, names))

    @classmethod
    def rows(
        cls, X: np.ndarray, y: np.ndarray, owner: Sequence[object] | np.ndarray | None = None
    ) -> "Arrays":
        """Take rows, to be divided by `owner` or by the section's partition.

        Parameters
        ----------
        X : ndarray, shape (n, p)
        y : ndarray, shape (n,)
        owner : array_like, shape (n,), optional
            Who holds each row; the column ``owner``.

        Raises
        ------
        MeaningError
            If shapes do not fit or a value is not finite.
        """
        a, b = _pair(X, y, "")
        _check_indexes("", X=X, y=y, owner=owner)
        column = None if owner is None else _codes(owner)
        if column is not None and column.shape != b.shape:
            message = f"owner needs one entry per row, got {column.shape} for {len(b)} rows"
            raise MeaningError("data.source", message)
        return cls(records=Records(a, b, column, None, ()))

    def load(self, request: DataRequest) -> Table | Held:
        """Hand the arrays over, copied.

        Raises
        ------
        MeaningError
            If public rows are asked for and every record has an owner.
        """
        records = self.records
        assert records is not None
        names = tuple(f"x{j + 1}" for j in range(records.X.shape[1]))
        notes: dict[str, object] = {"columns": list(names), "digest": records.digest}
        if records.offsets is None:
            columns = {} if records.owner is None else {"owner": records.owner}
            return Table(records.X, records.y, names, columns, "owner" if columns else None, notes)
        if request.public:
            raise MeaningError("data.public", "every record given per agent has an owner; none is public")
        X, y, nothing = records.X.copy(), records.y.copy(), (np.empty((0, len(names))), np.empty(0))
        return Held(X, y, records.offsets, names, records.labels, *nothing, notes=notes)


def _pair(X: np.ndarray, y: np.ndarray, whose: str) -> tuple[np.ndarray, np.ndarray]:
    _check_indexes(whose, X=X, y=y)
    a, b = _numbers(X, f"{whose}X"), _numbers(y, f"{whose}y")
    if a.ndim != 2 or b.shape != a.shape[:1] or not a.size:
        raise MeaningError("data.source", f"{whose}X must be (n, p) and y (n,); got {a.shape} and {b.shape}")
    check_finite(a, (f"{whose}x{j + 1}" for j in range(a.shape[1])), "data.source")
    check_finite(b[:, None], [f"{whose}y"], "data.source")
    return a, b


def _numbers(values: Any, name: str) -> np.ndarray:
    """Copy an array of numbers; nothing is read as one that is none."""
    array = _plain(values, name)
    if array.dtype.kind not in "biuf":
        message = (
            f"X and y must be arrays of numbers; {name} holds {array.dtype}; astype(float) makes numbers"
        )
        raise MeaningError("data.source", message)
    return np.array(array, dtype=np.float64, order="C")


def _codes(owner: Any) -> np.ndarray:
    """Copy who holds each row: text, or real numbers, not both, as NumPy would write the numbers as text."""
    codes = np.array(_plain(owner, "owner"))
    entries = np.ravel(np.array(owner, dtype=object)) if codes.dtype.kind == "U" else ()
    if codes.dtype.kind not in "biufUO" or not all(isinstance(entry, str) for entry in entries):
        raise MeaningError("data.source", f"owner must hold text or real numbers, got {codes.dtype} or both")
    return codes


def _plain(values: Any, name: str) -> np.ndarray:
    """Array without a mask.

    Raises
    ------
    MeaningError
        If entries are masked, or rows differ in length.
    """
    if any(map(np.ma.is_masked, values if isinstance(values, list | tuple) else [values])):
        raise MeaningError("data.source", f"{name} has masked entries; leave their rows out, or fill them")
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise MeaningError("data.source", f"{name} is not an array: {first_line(error)}") from None


def _check_indexes(whose: str, **given: Any) -> None:
    """Raise if objects of pandas have different indexes: their rows lie in different orders."""
    indexes = {name: values.index for name, values in given.items() if hasattr(values, "iloc")}
    for name, index in indexes.items():
        first, other = next(iter(indexes.items()))
        if not index.equals(other):
            raise MeaningError(
                "data.source",
                f"{whose}{first} and {name} have different indexes; {name}.loc[{first}.index] aligns them",
            )
