"""The ``labels`` section: words that figures and tables for people show for swept keys and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from p2psim.core.errors import Fault
from p2psim.core.faults import unknown
from p2psim.core.nodes import Node, at

if TYPE_CHECKING:
    import pandas as pd

#: Words of a key, or of all its values in their order.
Labels = dict[str, str | list[str]]


def label_faults(
    node: Node, labels: Labels, columns: Mapping[str, Sequence[object]], zipped: Sequence[str]
) -> list[Fault]:
    """Say which labels are of nothing that is swept.

    Parameters
    ----------
    node : Node
        Of the scenario, for places.
    labels : dict
    columns : mapping
        Values of each swept key, as in tables, in the order of the cells.
    zipped : sequence of str
        Keys that advance together.
    """
    section = node.child("labels")
    places = section.keys if section is not None else {}
    place = section.place if section is not None else node.place
    return [
        at(places.get(name, place), f"labels.{name}", message)
        for name, words in labels.items()
        for message in _wrong(name, words, columns, zipped)
    ]


def _wrong(
    name: str, words: str | list[str], columns: Mapping[str, Sequence[object]], zipped: Sequence[str]
) -> list[str]:
    key, equals, value = name.partition("=")
    if key == "zip" and not equals and zipped:
        values = list(dict.fromkeys(zip(*(map(str, columns[key]) for key in zipped), strict=True)))
        if isinstance(words, str):
            return [f"must be a list, a word for each of the {len(values)} values that advance together"]
    elif key not in columns:
        return [unknown("swept key", key, list(columns)) if columns else f"{key} is not swept; nothing is"]
    else:
        values = list(dict.fromkeys(columns[key]))  # type: ignore[arg-type]
    if equals:
        matching = [known for known in values if _is(value, known)]
        if isinstance(words, list):
            return ["must be text, the words for this value"]
        if len(matching) > 1:
            known = ", ".join(map(_text, matching))
            return [f"{value} is the kind of {len(matching)} values; write one as in tables: {known}"]
        return [] if matching else [unknown(f"value of {key}", value, list(map(_text, values)))]
    if isinstance(words, list) and len(words) != len(values):
        return [f"has {len(words)} words for {len(values)} values: {', '.join(map(_text, values))}"]
    return []


def _text(value: object) -> str:
    return " with ".join(value) if isinstance(value, tuple) else str(value)


def _is(text: str, value: object) -> bool:
    """Whether a text names a value: by its number, its text, or the kind of a part."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text.lstrip(".") if text == ".inf" else text) == float(value)
        except ValueError:
            return False
    return text in (str(value), str(value).lower(), str(value).partition("(")[0])


def given_words(
    tree: Mapping[str, Any], table: pd.DataFrame
) -> tuple[dict[str, str], dict[str, dict[Any, str]]]:
    """Words of keys, and of values by key and value in a table.

    Values of keys that advance together have the key ``zip``, and the texts of their columns joined by ``|``.

    Parameters
    ----------
    tree : mapping
        A resolved scenario.
    table : DataFrame
        With a column for each swept key, and ``cell``.
    """
    names: dict[str, str] = {}
    values: dict[str, dict[Any, str]] = {}
    cells = table.drop_duplicates("cell").sort_values("cell") if "cell" in table else table
    for name, words in (tree.get("labels") or {}).items():
        key, equals, value = name.partition("=")
        if key == "zip":
            keys = [key for key in cells if key in tree.get("sweep", {}).get("zip", {})]
            known = list(dict.fromkeys(cells[keys].astype(str).agg("|".join, axis=1))) if keys else []
        elif key in cells:
            known = list(dict.fromkeys(cells[key].tolist()))
        else:
            continue
        if equals:
            values.setdefault(key, {}).update({one: words for one in known if _is(value, one)})
        elif isinstance(words, str):
            names[key] = words
        elif len(words) == len(known):
            values.setdefault(key, {}).update(zip(known, words, strict=True))
    return names, values
