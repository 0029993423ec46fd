"""A source: attribute-relation files, as Weka writes them."""

import csv
import math
import re
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, checked, sha256_of
from p2psim.core.text_tables import number
from p2psim.data.columns import require
from p2psim.data.records import DataRequest, Table

KEY = "data.source.path"
ATTRIBUTE = re.compile(r"@attribute\s+('[^']+'|\"[^\"]+\"|[^\s{]+)\s*(\{.*\}|\S+)", re.IGNORECASE)


@p2psim.register
class Arff(p2psim.DataSource):
    """An ARFF file of numeric and nominal attributes, without missing values."""

    kind: Literal["arff"] = "arff"
    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    y: str = Field(
        description="attribute of labels; of a nominal one with two values, the first is −1 and the second +1"
    )

    about: ClassVar[str] = "your own ARFF file; y is an attribute"
    citation: ClassVar[str] = "yours"
    licence: ClassVar[str] = "yours"
    needs: ClassVar[str] = "path: the file"

    def load(self, request: DataRequest) -> Table:
        """Read the file: all attributes but y and the partition's are features, nominal ones by their places."""
        place = checked(self.path, KEY)
        attributes, rows, lines = _read(place)
        require(attributes, self.y, "data.source.y")
        names = tuple(name for name in attributes if name not in (self.y, request.held_by))
        if not names:
            raise MeaningError(KEY, f"{place} has no attribute beside y to be a feature")
        coded = {
            name: np.array([_coded(value, allowed) for value in values])
            for (name, allowed), values in zip(attributes.items(), zip(*rows, strict=True), strict=True)
        }
        labels = attributes[self.y]
        if labels is not None and len(labels) != 2:
            raise MeaningError("data.source.y", f"{self.y!r} must be numeric or have 2 values, got {labels}")
        return Table(
            X=np.column_stack([coded[name] for name in names]),
            y=coded[self.y] if labels is None else 2 * coded[self.y] - 1,
            names=names,
            columns={
                name: coded[name] if allowed is None else np.array(allowed)[coded[name].astype(int)]
                for name, allowed in attributes.items()
            },
            notes={"columns": list(names), "sha256": sha256_of(place)},
            where=lambda row: f"row {row + 1} ({place}:{lines[row]})",
        )


def _coded(value: Any, allowed: list[str] | None) -> float:
    return float(value if allowed is None else allowed.index(value))


def _read(place: Path) -> tuple[dict[str, list[str] | None], list[list[Any]], list[int]]:
    """Attributes, each with its values or None for numbers; the rows; and the line of each row."""
    attributes: dict[str, list[str] | None] = {}
    rows: list[list[Any]] = []
    lines: list[int] = []
    begun = False
    try:
        text = place.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MeaningError(KEY, f"{place} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    for line, words in enumerate(map(str.strip, text.splitlines()), start=1):
        if not words or words.startswith("%"):
            continue
        where = f"{place}:{line}"
        if begun:
            rows.append(_row(words, attributes, where))
            lines.append(line)
        elif words.lower() == "@data":
            begun = True
        elif not words.lower().startswith("@relation"):
            name, allowed = _attribute(words, where)
            if name in attributes:
                raise MeaningError(KEY, f"{where}: two attributes are called {name!r}")
            attributes[name] = allowed
    if not rows:
        raise MeaningError(KEY, f"{place} has no rows after @data")
    return attributes, rows, lines


def _attribute(words: str, where: str) -> tuple[str, list[str] | None]:
    found = ATTRIBUTE.fullmatch(words)
    if found is None:
        raise MeaningError(KEY, f"{where}: expected @attribute NAME TYPE or @data, got {words!r}")
    name, kind = found[1].strip("'\""), found[2]
    if kind.startswith("{"):
        return name, _cells(kind[1:-1])
    if kind.lower() not in ("numeric", "real", "integer"):
        raise MeaningError(
            KEY, f"{where}: {name!r} must be numeric, real, integer or {{values}}, got {kind!r}"
        )
    return name, None


def _row(words: str, attributes: dict[str, list[str] | None], where: str) -> list[Any]:
    cells = _cells(words)
    if len(cells) != len(attributes):
        raise MeaningError(KEY, f"{where}: must have {len(attributes)} values, got {len(cells)}")
    row: list[Any] = []
    for cell, (name, allowed) in zip(cells, attributes.items(), strict=True):
        value = number(cell) if allowed is None else cell
        if allowed is None and (value is None or not math.isfinite(value)):
            raise MeaningError(KEY, f"{where}: {name!r} must be a finite number, got {cell!r}")
        if allowed is not None and cell not in allowed:
            raise MeaningError(KEY, f"{where}: {name!r} must be one of {', '.join(allowed)}, got {cell!r}")
        row.append(value)
    return row


def _cells(words: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([words], quotechar="'", skipinitialspace=True))]
