"""Credit card transactions, few of them fraudulent."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.data.columns import numeric, require
from p2psim.data.downloads import CREDITCARD, required
from p2psim.data.records import Request, Table
from p2psim.data.sources.files import DataPath, fingerprint, read_csv
from p2psim.errors import MeaningError
from p2psim.options import Options


class CreditCard(Options):
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
        frame = read_csv(path, key)
        require(frame.columns, "Class", key)
        classes = numeric(frame, ["Class"], key)[:, 0]
        if not np.isin(classes, (0, 1)).all():
            raise MeaningError(key, f"{path}: column 'Class' must hold 0 and 1")
        names = [str(name) for name in frame.columns if name != "Class"]
        return Table(
            X=numeric(frame, names, key),
            y=2 * classes - 1,
            names=tuple(names),
            columns=frame,
            notes={"columns": names, **fingerprint(path)},
        )
