"""Data from the user's own files in LibSVM's sparse format: a label, then ``index:value`` for what is not 0."""

import io
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError, first_line
from p2psim.core.files import DataPath, checked
from p2psim.core.text_tables import DAMAGED, BeyondFloatError, number, opened, shown
from p2psim.data.records import DataRequest, DataSource, Table
from p2psim.data.sources.files import fingerprint

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Values of a dense table, at most: 400 MB.
MOST_VALUES = 50_000_000


def read_sparse(path: str, key: str) -> "tuple[csr_array, np.ndarray]":
    """Read a file (compressed as its name says), by scikit-learn where it is installed.

    Parameters
    ----------
    path : str
    key : str
        The dotted scenario key, named in errors.

    Returns
    -------
    X : scipy.sparse.csr_array, shape (n, largest index + 1)
        With the indices as they are written.
    y : ndarray, shape (n,)

    Raises
    ------
    MeaningError
        With the line, if a label or value is no finite number, or indices are not whole numbers that ascend.
    """
    place = checked(path, key)
    try:
        with suppress(ImportError, ValueError), opened(place) as stream:  # a ValueError does not say where
            from sklearn.datasets import load_svmlight_file

            X, y = load_svmlight_file(stream, zero_based=True)
            if len(y) and np.isfinite(y).all() and np.isfinite(X.data).all():
                return X, y
        with opened(place) as stream, io.TextIOWrapper(stream, "utf-8") as lines:
            X, y = _read_lines(lines, str(place), key)
    except UnicodeDecodeError:
        raise MeaningError(key, f"{place} is not UTF-8 text") from None
    except DAMAGED as error:
        raise MeaningError(key, f"{place} cannot be read: {first_line(error)}") from None
    if not len(y):
        raise MeaningError(key, f"{place} has no rows")
    return X, y


def _read_lines(lines: Iterable[str], place: str, key: str) -> "tuple[csr_array, np.ndarray]":
    from scipy.sparse import csr_array

    labels: list[float] = []
    values: list[float] = []
    indices: list[int] = []
    ends = [0]
    for line, text in enumerate(lines, start=1):
        words = text.partition("#")[0].split()
        if not words:
            continue
        labels.append(_number(words[0], "a label", place, line, key))
        last = -1
        for word in words[1:]:
            name, colon, written = word.partition(":")
            if name == "qid" and colon:
                continue
            if not (colon and name.isascii() and name.isdigit() and int(name) > last):
                raise MeaningError(
                    key,
                    f"{place}:{line}: index:value is expected, with indices that ascend; got {shown(word)}",
                )
            last = int(name)
            indices.append(last)
            values.append(_number(written, "a value", place, line, key))
        ends.append(len(values))
    if max(indices, default=0) >= 2**31:
        raise MeaningError(key, f"{place}: the largest index is {max(indices):,}, beyond 2,147,483,647")
    shape = len(labels), max(indices, default=-1) + 1
    return csr_array((np.array(values), np.array(indices, np.int64), ends), shape=shape), np.array(labels)


def _number(text: str, what: str, place: str, line: int, key: str) -> float:
    try:
        value = number(text)
    except BeyondFloatError as error:
        raise MeaningError(key, f"{place}:{line}: {error}") from None
    if value is None or not np.isfinite(value):
        raise MeaningError(key, f"{place}:{line}: {what} must be a finite number, got {shown(text)}")
    return value


class LibSVMFile(DataSource):
    """A file in LibSVM's format: one line per record, with its label and what is not 0."""

    about: ClassVar[str] = "your own file in LibSVM's format; y is the number that begins a line"
    citation: ClassVar[str] = "yours"
    licence: ClassVar[str] = "yours"
    needs: ClassVar[str] = "path: the file"
    unsaid: ClassVar[tuple[str, ...]] = ("test_path",)

    kind: Literal["libsvm"] = "libsvm"
    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    test_path: DataPath | None = Field(
        None, description="a file with records for tests only, which all owners get in turn"
    )

    def load(self, request: DataRequest) -> Table:
        """Read the file, or both, as a dense table.

        Raises
        ------
        MeaningError
            If a file cannot be read, or the table would be too large.
        """
        keys = {"data.source.path": self.path, "data.source.test_path": self.test_path}
        read = [read_sparse(path, key) for key, path in keys.items() if path is not None]
        # Indices begin at 1, unless one is 0.
        begins = 0 if any(0 in sparse.indices for sparse, _ in read) else 1
        end = max(X.shape[1] for X, _ in read)
        if end <= begins:
            raise MeaningError("data.source.path", f"{self.path} has no features")
        rows, columns = sum(len(y) for _, y in read), end - begins
        if rows * columns > MOST_VALUES:
            raise MeaningError(
                "data.source.path",
                f"{self.path}: {rows:,} rows of {columns:,} features are {rows * columns:,} values, more than "
                f"{MOST_VALUES:,}: models are dense here; keep fewer features or rows",
            )
        names = [f"x{index}" for index in range(begins, end)]
        X, below = np.zeros((rows, columns)), 0
        for sparse, y in read:
            X[below : below + len(y), : max(sparse.shape[1] - begins, 0)] = sparse[:, begins:].toarray()
            below += len(y)
        notes = {"columns": names, **fingerprint(self.path)}
        if self.test_path is not None:
            notes["test_sha256"] = fingerprint(self.test_path)["sha256"]
        labels, tests = np.concatenate([y for _, y in read]), sum(len(y) for _, y in read[1:])
        return Table(X, labels, tuple(names), notes=notes, tests=tests)
