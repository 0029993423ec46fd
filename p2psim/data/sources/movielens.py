"""Ratings of films, MovieLens 100K."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.data.columns import check_finite
from p2psim.data.downloads import MOVIELENS, required
from p2psim.data.records import Request, Table
from p2psim.data.sources.files import DataPath, checked, fingerprint
from p2psim.errors import MeaningError, first_line
from p2psim.options import Options

COLUMNS = ("user", "item", "rating", "timestamp")


class MovieLens100K(Options):
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
        place = required(MOVIELENS) if self.path is None else checked(self.path, key)
        frame = _read(place, key)
        known, item = np.unique(frame["item"].to_numpy(), return_inverse=True)
        twice = frame.duplicated(["user", "item"]).to_numpy()
        if twice.any():
            row = int(np.argmax(twice)) + 1
            raise MeaningError(key, f"{place}: a user rates an item twice, the second time in row {row}")
        return Table(
            X=item.astype(np.float64)[:, None],
            y=frame["rating"].to_numpy(dtype=np.float64),
            names=("item",),
            columns=frame[["user", "item"]],
            held_by="user",
            notes={"users": int(frame["user"].nunique()), "items": len(known), **fingerprint(str(place))},
            items=len(known),
        )


def _read(place: Path, key: str) -> Any:
    """Read user, item, rating and timestamp, separated by tabs, with or without a line of head."""
    import pandas as pd

    try:
        with place.open(encoding="utf-8") as file:
            head = not file.readline().lstrip()[:1].isdigit()
        frame = pd.read_csv(
            place,
            sep="\t",
            header=None,
            skiprows=int(head),
            names=list(COLUMNS),
            index_col=False,
            dtype={"user": np.int64, "item": np.int64, "rating": np.float64},
        )
    except (ValueError, OSError, pd.errors.ParserWarning) as error:  # pandas' parser errors are ValueErrors
        said = first_line(error)
        raise MeaningError(
            key, f"{place} must hold user, item, rating and timestamp, separated by tabs: {said}"
        ) from None
    check_finite(frame[["rating"]].to_numpy(), ["rating"], key)
    return frame
