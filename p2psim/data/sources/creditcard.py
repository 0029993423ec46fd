"""Credit card transactions, few of them fraudulent."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath
from p2psim.data.downloads import CREDITCARD, required
from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.files import fingerprint
from p2psim.data.table_file import read_csv


class CreditCard(DataSource):
    """284,807 transactions, 492 of them frauds: y = 1 for a fraud, −1 else."""

    about: ClassVar[str] = "284,807 card transactions, y = 1 for the 492 frauds, −1 else"
    citation: ClassVar[str] = CREDITCARD.citation
    licence: ClassVar[str] = CREDITCARD.licence
    needs: ClassVar[str] = f"{CREDITCARD.cure}, or path: creditcard.csv"
    generated: ClassVar[bool] = False

    kind: Literal["creditcard"] = "creditcard"
    path: DataPath | None = Field(None, description="the original creditcard.csv; left out, the fetched file")

    def load(self, request: Request) -> Table:
        """Read the transactions: Time, V1 to V28 and Amount are features, Class the label.

        Raises
        ------
        MissingSourceError
            If the file is not there.
        MeaningError
            If it has no column Class of zeros and ones, or a column that is no number.
        """
        key = "data.source" if self.path is None else "data.source.path"
        path = str(required(CREDITCARD)) if self.path is None else self.path
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
