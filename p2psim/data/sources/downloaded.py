"""Data sets that are fetched once: ratings of films, MovieLens 100K, and credit card transactions."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, checked
from p2psim.core.text_tables import lines_of
from p2psim.data.downloads import CREDITCARD, MOVIELENS, Download, required
from p2psim.data.records import DataRequest, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.files import fingerprint
from p2psim.data.table_file import read_csv


def _place_and_key(download: Download, path: str | None) -> tuple[str, str]:
    """Path of the user's file, or of the fetched one, and the key that is to blame for it."""
    return (str(required(download)), "data.source") if path is None else (path, "data.source.path")


class MovieLens100K(DataSource):
    """100,000 ratings (1 to 5) of 1,682 films by 943 people."""

    about: ClassVar[str] = "100,000 ratings of 1,682 films, y = rating; by user (943); for features als"
    citation: ClassVar[str] = MOVIELENS.citation
    licence: ClassVar[str] = MOVIELENS.licence
    needs: ClassVar[str] = f"{MOVIELENS.cure}, or path: u.data"

    kind: Literal["movielens-100k"] = "movielens-100k"
    path: DataPath | None = Field(
        None, description="the original u.data; left out, the fetched file, or that of an installed recbole"
    )

    def load(self, request: DataRequest) -> Table:
        """Read the ratings: X is the item's number, and `features` make features of it.

        Columns are separated by tabs, with or without a line of head.

        Raises
        ------
        MissingSourceError
            If the file is not there.
        MeaningError
            If it is no table of user, item, rating and timestamp, or a user rates an item twice.
        """
        import pandas as pd

        path, key = _place_and_key(MOVIELENS, self.path)
        names = ("user", "item", "rating", "timestamp")
        _, first = next(lines_of(checked(path, key), key, "\t"), (0, [""]))
        skip = int(not first[0].strip().isdigit())
        try:
            file = read_csv(path, key, delimiter="\t", names=names, skip=skip)
            values = file.finite(names[:3], key)
            if not len(values) or (values[:, :2] != np.floor(values[:, :2])).any():
                raise MeaningError(key, "users and items must be whole numbers")
        except MeaningError as error:
            what = error.faults[0].message
            raise MeaningError(
                key, f"{path} must hold user, item, rating and timestamp, separated by tabs: {what}"
            ) from None
        items, item = np.unique(values[:, 1], return_inverse=True)
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
            notes={"users": len(np.unique(values[:, 0])), "items": len(items), **fingerprint(path)},
            items=len(items),
            where=file.where,
        )


class CreditCard(DataSource):
    """284,807 transactions, 492 of them frauds: y = 1 for a fraud, −1 else."""

    about: ClassVar[str] = "284,807 card transactions, y = 1 for the 492 frauds, −1 else"
    citation: ClassVar[str] = CREDITCARD.citation
    licence: ClassVar[str] = CREDITCARD.licence
    needs: ClassVar[str] = f"{CREDITCARD.cure}, or path: creditcard.csv"

    kind: Literal["creditcard"] = "creditcard"
    path: DataPath | None = Field(None, description="the original creditcard.csv; left out, the fetched file")

    def load(self, request: DataRequest) -> Table:
        """Read the transactions: Time, V1 to V28 and Amount are features, Class the label.

        Raises
        ------
        MissingSourceError
            If the file is not there.
        MeaningError
            If it has no column Class of zeros and ones, or a column that is no number.
        """
        path, key = _place_and_key(CREDITCARD, self.path)
        file = read_csv(path, key)
        classes = file.finite(["Class"], key)[:, 0]
        if not np.isin(classes, (0, 1)).all():
            raise MeaningError(key, f"{path}: column 'Class' must hold 0 and 1")
        names = [name for name in file if name not in ("Class", request.held_by)]
        return Table(
            X=file.finite(names, key),
            y=2 * classes - 1,
            names=tuple(names),
            columns=file,
            where=file.where,
            notes={"columns": names, **fingerprint(path)},
        )
