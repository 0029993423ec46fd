"""Ratings of films, MovieLens 100K."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, checked
from p2psim.core.text_tables import lines_of
from p2psim.data.downloads import MOVIELENS, required
from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.files import fingerprint
from p2psim.data.table_file import TableFile, read_csv

COLUMNS = ("user", "item", "rating", "timestamp")


class MovieLens100K(DataSource):
    """100,000 ratings (1 to 5) of 1,682 films by 943 people."""

    about: ClassVar[str] = "100,000 ratings of 1,682 films, y = rating; by user (943); for features als"
    citation: ClassVar[str] = MOVIELENS.citation
    licence: ClassVar[str] = MOVIELENS.licence
    needs: ClassVar[str] = f"{MOVIELENS.cure}, or path: u.data"
    generated: ClassVar[bool] = False

    kind: Literal["movielens-100k"] = "movielens-100k"
    path: DataPath | None = Field(
        None, description="the original u.data; left out, the fetched file, or that of an installed recbole"
    )

    def load(self, request: Request) -> Table:
        """Read the ratings: X is the item's number, and `features` make features of it.

        Raises
        ------
        MissingSourceError
            If the file is not there.
        MeaningError
            If it is no table of user, item, rating and timestamp, or a user rates an item twice.
        """
        key = "data.source" if self.path is None else "data.source.path"
        import pandas as pd

        path = str(required(MOVIELENS)) if self.path is None else self.path
        file, values = _read(path, key)
        known, item = np.unique(values[:, 1], return_inverse=True)
        twice = pd.DataFrame(values[:, :2]).duplicated().to_numpy()
        if twice.any():
            place = file.where(int(np.argmax(twice)))
            raise MeaningError(key, f"a user rates an item twice, the second time in {place}")
        return Table(
            X=item.astype(np.float64)[:, None],
            y=values[:, 2].copy(),
            names=("item",),
            columns={"user": file["user"]},
            held_by="user",
            notes={"users": len(np.unique(values[:, 0])), "items": len(known), **fingerprint(path)},
            items=len(known),
            where=file.where,
        )


def _read(path: str, key: str) -> tuple[TableFile, np.ndarray]:
    """Read user, item, rating and timestamp, separated by tabs, with or without a line of head; the first three."""
    _, first = next(lines_of(checked(path, key), key, "\t"), (0, [""]))
    skip = int(not first[0].strip().isdigit())
    try:
        file = read_csv(path, key, delimiter="\t", names=COLUMNS, skip=skip)
        values = file.finite(COLUMNS[:3], key)
        if not len(values) or (values[:, :2] != np.floor(values[:, :2])).any():
            raise MeaningError(key, "users and items must be whole numbers")
    except MeaningError as error:
        what = error.faults[0].message
        raise MeaningError(
            key, f"{path} must hold user, item, rating and timestamp, separated by tabs: {what}"
        ) from None
    return file, values
