"""Labels that are classes: what they are called, which of them are kept, and how they are numbered.

Two classes are −1 and +1, which losses of linear models take; more of them are 0 … C − 1. Models of several classes
take numbers from 0 on: `class_numbers` gives them in either case.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from p2psim.core.agent_names import some
from p2psim.core.errors import MeaningError
from p2psim.core.options import TEXT_KEYS
from p2psim.data.labels import owners_of
from p2psim.data.records import Held, Table

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
    where: Callable[[int], str] = loaded.where
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
        raise MeaningError("data.classes", f"{kind} has ratings, which are numbers and no classes")
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
