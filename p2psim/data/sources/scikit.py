"""Data sets inside the package ``scikit-learn`` (extra ``data``): handwritten digits, and breast tumours.

Their files are read; nothing of the package is run.
"""

import gzip
import importlib.util
import zlib
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from p2psim.core.errors import Fault, MissingSourceError, not_installed
from p2psim.data.records import DataRequest, DataSource, Table
from p2psim.data.sources.packaged import CURE


def read_file(name: str, rows: int, columns: int, head: int = 0) -> np.ndarray:
    """Read a file of numbers of scikit-learn.

    Parameters
    ----------
    name : str
        Of the file.
    rows, columns : int
        How many it must have.
    head : int
        Lines before them.

    Returns
    -------
    ndarray of float64, shape (rows, columns)

    Raises
    ------
    MissingSourceError
        If the package is not installed, or the file is another; the message says what to run.
    """
    package = importlib.util.find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        raise not_installed("scikit-learn", "data", "data.source")
    place = Path(package.submodule_search_locations[0]) / "datasets" / "data" / name
    try:
        data = place.read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        values = np.loadtxt(text.splitlines(), delimiter=",", skiprows=head, ndmin=2)
    except (OSError, EOFError, zlib.error, ValueError):
        values = np.empty((0, 0))
    if values.shape != (rows, columns):
        message = f"the {name} of the installed scikit-learn is another; run {CURE} --force-reinstall"
        raise MissingSourceError(Fault(message, "data.source"))
    return values


def _table(
    X: np.ndarray,
    y: np.ndarray,
    names: tuple[str, ...],
    column: str,
    labels: np.ndarray,
    classes: tuple[str, ...],
) -> Table:
    """Records whose classes also stand in a column, by which they can be divided."""
    notes: dict[str, object] = {"columns": list(names), "dropped": []}
    return Table(X, y, names, {column: labels}, notes=notes, classes=classes)


class ScikitSource(DataSource):
    """Base of sources in the package: classes, one row per record, with the class at its end."""

    needs: ClassVar[str] = CURE
    package: ClassVar[str] = "sklearn"

    @abstractmethod
    def load(self, request: DataRequest) -> Table:
        """Read the records.

        Raises
        ------
        MissingSourceError
            If the package is not there.
        """


class Digits(ScikitSource):
    """1,797 images of 8 × 8 pixels, grey levels from 0 to 1."""

    about: ClassVar[str] = "1,797 handwritten digits of 13 people, 8 × 8 pixels; y = the digit, 10 classes"
    citation: ClassVar[str] = (
        "E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits (UCI, 1998), its test set, through "
        "scikit-learn"
    )
    licence: ClassVar[str] = "CC BY 4.0 (UCI Machine Learning Repository)"

    kind: Literal["digits"] = "digits"

    def load(self, request: DataRequest) -> Table:
        """Read the images; a grey level is the number of dark ones among 16 points, by 16.

        Raises
        ------
        MissingSourceError
            If the package is not there.
        """
        values = read_file("digits.csv.gz", 1_797, 65)
        names = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
        digit = values[:, -1]
        grey, classes = values[:, :-1] / 16, tuple(map(str, range(10)))
        return _table(grey, digit, names, "digit", digit.astype(np.int64), classes)

    def x_bounds(self) -> tuple[float, float]:
        """Those of 64 grey levels."""
        return 64.0, 1.0


#: What was measured of the nuclei of cells, each with its mean, standard error, and mean of the largest three.
_MEASURES = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry",
    "fractal dimension",
)  # fmt: skip


class BreastCancer(ScikitSource):
    """569 tumours, 30 measures of nuclei of cells."""

    about: ClassVar[str] = "569 breast tumours, 30 measures of cells; y = malignant or benign, 2 classes"
    citation: ClassVar[str] = (
        "W. Wolberg, O. Mangasarian, N. Street, W. Street, Breast Cancer Wisconsin (Diagnostic) (UCI, 1993), through "
        "scikit-learn"
    )
    licence: ClassVar[str] = "CC BY 4.0 (UCI Machine Learning Repository)"

    kind: Literal["breast-cancer"] = "breast-cancer"

    def load(self, request: DataRequest) -> Table:
        """Read the measures.

        Raises
        ------
        MissingSourceError
            If the package is not there.
        """
        values = read_file("breast_cancer.csv", 569, 31, head=1)
        names = tuple(f"{measure} {of}" for of in ("mean", "error", "worst") for measure in _MEASURES)
        classes = ("malignant", "benign")
        diagnosis = np.array(classes)[values[:, -1].astype(int)]
        X, y = np.ascontiguousarray(values[:, :-1]), values[:, -1]
        return _table(X, y, names, "diagnosis", diagnosis, classes)
