"""Labels of owners as they are written; of those that are classes, which are kept, and how they are numbered.

Two classes are −1 and +1, which losses of linear models take; more of them are 0 … C − 1. Models of several classes
take numbers from 0 on: `class_numbers` gives them in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from p2psim.core.agent_names import some
from p2psim.core.errors import MeaningError
from p2psim.core.options import TEXT_KEYS
from p2psim.core.text_tables import is_number
from p2psim.data.columns import NotNumbersError
from p2psim.data.records import Held, Table, Where, row_name

if TYPE_CHECKING:
    import pandas as pd


#: Relative error of numbers in single precision.
_SINGLE = 2.0**-23


def labels_in(column: Any) -> np.ndarray | pd.Categorical:
    """Take a column as labels, as they are written: ``007`` is not ``7``, and ``NA`` is one.

    Parameters
    ----------
    column : pyarrow.ChunkedArray

    Returns
    -------
    ndarray of float64 or pandas.Categorical, shape (n,)
        Floating-point numbers stay. Categories are ordered as numbers if all of them are numbers, otherwise as text;
        null and empty text are missing.

    Raises
    ------
    NotNumbersError
        If values are neither text nor numbers nor dates.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return np.array(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)
    coded = pc.dictionary_encode(text_of(column)).combine_chunks()
    names = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(-1).to_numpy()
    ordered = in_order(name for name in names if name)
    place = {name: i for i, name in enumerate(ordered)}
    renumbered = np.array([place.get(name, -1) for name in names] + [-1], dtype=np.int64)
    categories = pd.Index(ordered, dtype=object)
    return pd.Categorical.from_codes(renumbered[codes], categories=categories, ordered=True)


def text_of(column: Any) -> Any:
    """A column of Arrow as text, booleans as ``True`` and ``False``; a NotNumbersError if it is no text by nature."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        text = pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # of lists, structures and bytes that are no text
        raise NotNumbersError(str(column.type)) from None
    return pc.utf8_capitalize(text) if pa.types.is_boolean(column.type) else text


def in_order(labels: Iterable[str]) -> list[str]:
    """Different labels in order: as numbers if all of them are numbers, otherwise as text."""
    by_text = sorted(labels)
    if any(not is_number(label) for label in by_text):
        return by_text
    return sorted(by_text, key=lambda label: Decimal(label.strip()))


def first_row(marked: np.ndarray) -> str:
    """Place of the first row that a mask marks."""
    return row_name(int(np.argmax(marked)))


@dataclass(frozen=True)
class Column:
    """A column that says who holds each row; `owners_of` numbers them.

    Attributes
    ----------
    values : array_like, shape (n,)
        Numbers or text, or labels of `labels_in`.
    first : callable
        Place of the first row that a mask of these rows, shape (n,), marks, for errors.
    """

    values: Any
    first: Callable[[np.ndarray], str] = first_row


def owners_of(
    values: Any, key: str, first: Callable[[np.ndarray], str] = first_row
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Number the distinct values of a column, in order, and name them.

    Floating-point numbers are named by their value to six places, and those that differ by the rounding of single
    precision are one: codes that are stored so, as the hospitals of `azpro` are, have more digits than were written.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers or text, or labels of `labels_in`.
    key : str
        The dotted scenario key, named in errors.
    first : callable
        Place of the first value that a mask marks, for errors.

    Returns
    -------
    owners : ndarray of int64, shape (n,)
    labels : tuple of str

    Raises
    ------
    MeaningError
        If a value is missing or infinite, or two that differ are written alike.
    """
    import pandas as pd

    series = pd.Series(values)

    def refuse(bad: np.ndarray, what: str) -> None:
        if bad.any():
            raise MeaningError(key, f"{int(bad.sum())} rows have {what}, the first is {first(bad)}")

    refuse(series.isna().to_numpy(), "no value")
    if pd.api.types.is_float_dtype(series.dtype):
        numbers = series.to_numpy(dtype=np.float64)
        refuse(np.isinf(numbers), "an infinite value")
        values, of_row = np.unique(numbers, return_inverse=True)
        near = [round(value, 6) for value in values.tolist()]
        for lower, upper in pairwise(values.tolist()):
            if round(lower, 6) == round(upper, 6) and upper - lower > _SINGLE * abs(upper):
                message = f"{lower!r} and {upper!r} are the same to six places; give the codes as text"
                raise MeaningError(key, message)
        distinct, of_value = np.unique(near, return_inverse=True)
        owners = of_value[of_row]
        labels = tuple(str(int(v)) if v == int(v) else str(v) for v in distinct.tolist())
    elif pd.api.types.is_numeric_dtype(series.dtype):
        distinct, owners = np.unique(series.to_numpy(), return_inverse=True)
        labels = tuple(map(str, distinct.tolist()))
    elif isinstance(series.dtype, pd.CategoricalDtype):
        present, owners = np.unique(series.cat.codes.to_numpy(), return_inverse=True)
        labels = tuple(series.cat.categories[present])
        if all(map(is_number, labels)):
            refuse(np.isinf(np.array(list(map(float, labels))))[owners], "an infinite value")
    else:
        owners, names = pd.factorize(series.astype(str).to_numpy(dtype=object), sort=True)
        labels = tuple(names)
        if series.nunique() > len(labels):
            message = "different values are written alike, such as the number 7 and the text '7'"
            raise MeaningError(key, message)
    return owners.astype(np.int64), labels


#: Different labels that classes may have, at most.
MOST_CLASSES = 1_000
#: What two classes are called whose labels, −1 and +1, have no other names.
SIGNS = ("-1", "1")


def _kind(value: Any) -> str:
    return "name" if isinstance(value, str) else "mapping" if isinstance(value, Mapping) else "list"


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


#: A class by its label as written; a whole number may stand without quotation marks.
ClassName = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "integer"]})]
_Several = Annotated[list[ClassName], Field(min_length=1)]

#: Which labels are classes: all that occur, some in this order, or classes that are made of several.
Classes = Annotated[
    Annotated[Literal["all"], Tag("name")]
    | Annotated[list[ClassName], Field(min_length=2), Tag("list")]
    | Annotated[dict[str, _Several], Field(min_length=2), Tag("mapping")],
    Discriminator(_kind),
    TEXT_KEYS,
]


def class_numbers(y: np.ndarray, count: int) -> np.ndarray:
    """Numbers 0 … C − 1 of the classes of records.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        Labels as `p2psim.data.prepare.Prepared` has them: ±1 where there are two classes.
    count : int
        C, at least two.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    return ((y + 1) / 2 if count == 2 else y).astype(np.int64)


@dataclass(frozen=True)
class _Rows(Mapping[str, Any]):
    """Some rows of every column of a table."""

    columns: Mapping[str, Any]
    rows: np.ndarray

    def __getitem__(self, name: str) -> Any:
        import pandas as pd

        values = self.columns[name]
        return (values if isinstance(values, pd.Categorical) else np.asarray(values))[self.rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def with_classes(loaded: Table | Held, wanted: Classes | None, kind: str) -> Table | Held:
    """Keep the records of the classes that are wanted, and number the classes.

    Parameters
    ----------
    loaded : Table or Held
        What a source gave. Where it names no classes, every different label is a class.
    wanted : "all", list of str, dict of list of str, or None
        As the scenario's ``data.classes``. None: as the source has them; without names nothing is done.
    kind : str
        Of the source.

    Returns
    -------
    Table or Held
        With `classes`; labels are ±1 for two of them, else 0 … C − 1.

    Raises
    ------
    MeaningError
        If labels are no classes, there is only one, or one that is wanted does not occur.
    """
    if wanted is None and not loaded.classes:
        return loaded
    if not loaded.classes:
        loaded = _named(loaded, kind)
    names = loaded.classes
    groups = _groups(names, wanted)
    number = np.full(len(names), -1, np.int64)
    for place, labels in enumerate(groups.values()):
        for label in labels:
            number[names.index(label)] = place
    numbers = number[loaded.y.astype(np.int64)]
    kept = numbers >= 0
    if isinstance(loaded, Held):
        return _relabelled(loaded, number, kept, tuple(groups), kind)
    y = _labels(numbers[kept], len(groups))
    if kept.all():
        return replace(loaded, y=y, classes=tuple(groups))
    rows = np.flatnonzero(kept)
    where: Where = loaded.where
    return replace(
        loaded,
        X=loaded.X[rows],
        y=y,
        columns=_Rows(loaded.columns, rows),
        where=lambda row: where(int(rows[row])),
        notes={**loaded.notes, "rows_of_other_classes": int(loaded.y.size - rows.size)},
        tests=int(kept[kept.size - loaded.tests :].sum()),
        classes=tuple(groups),
    )


def _groups(names: tuple[str, ...], wanted: Classes | None) -> dict[str, list[str]]:
    """Labels that each class is made of."""
    key = "data.classes"
    if isinstance(wanted, Mapping):
        groups = {name: list(labels) for name, labels in wanted.items()}
    else:
        chosen = wanted if isinstance(wanted, list) else list(names)
        groups = {name: [name] for name in chosen}
        if len(groups) < len(chosen):
            raise MeaningError(key, f"a class is named twice: {', '.join(chosen)}")
    every = [label for labels in groups.values() for label in labels]
    if (strange := next((label for label in every if label not in names), None)) is not None:
        raise MeaningError(key, f"no record has the label {strange!r}; the labels are {some(names, 12)}")
    if len(set(every)) < len(every):
        twice = next(label for i, label in enumerate(every) if label in every[:i])
        raise MeaningError(key, f"the label {twice!r} is named twice")
    if len(groups) < 2:
        raise MeaningError(key, f"there must be two classes or more; all labels are {some(names, 12)}")
    return groups


def _labels(numbers: np.ndarray, count: int) -> np.ndarray:
    """Labels of classes with these numbers."""
    return 2.0 * numbers - 1.0 if count == 2 else numbers.astype(float)


def _named(loaded: Table | Held, kind: str) -> Table | Held:
    """Name classes by labels that are numbers."""
    if loaded.items is not None:
        raise MeaningError("data.classes", f"{kind} has ratings, which are numbers, not classes")
    parts = [loaded.y]
    if isinstance(loaded, Held):
        parts += [loaded.public_labels, loaded.tests.y]
    numbers, names = owners_of(np.concatenate(parts), "data.classes")
    check_number(names)
    y, *others = np.split(numbers.astype(float), np.cumsum([part.size for part in parts])[:-1])
    if not isinstance(loaded, Held):
        return replace(loaded, y=y, classes=names)
    test = None if loaded.test is None else replace(loaded.test, y=others[1])
    return replace(loaded, y=y, public_labels=others[0], test=test, classes=names)


def check_number(names: tuple[str, ...]) -> None:
    """Raise a MeaningError if there are too many different labels to be classes."""
    if len(names) > MOST_CLASSES:
        raise MeaningError(
            "data.classes",
            f"classes are up to {MOST_CLASSES:,} different labels; these are {len(names):,}: leave the key out "
            "for labels that are numbers",
        )


def _relabelled(held: Held, number: np.ndarray, kept: np.ndarray, names: tuple[str, ...], kind: str) -> Held:
    """Number the classes of records that owners hold already, all of which must be kept."""
    parts = [number[labels.astype(np.int64)] for labels in (held.public_labels, held.tests.y)]
    if not (kept.all() and all((part >= 0).all() for part in parts)):
        left_out = some([name for name, place in zip(held.classes, number, strict=True) if place < 0], 12)
        raise MeaningError(
            "data.classes",
            f"{kind} gives each owner its records already, so that none may be left out; name {left_out} too",
        )
    test = None if held.test is None else replace(held.test, y=_labels(parts[1], len(names)))
    y = _labels(number[held.y.astype(np.int64)], len(names))
    return replace(held, y=y, public_labels=_labels(parts[0], len(names)), test=test, classes=names)
