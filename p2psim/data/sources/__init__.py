"""Sources of records. A new one is one file beside these, and one name in the list below."""

from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.registry import AnyOf, parts, register_all
from p2psim.data.sources.arrays import Arrays
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.creditcard import CreditCard
from p2psim.data.sources.files import CSVFile, ParquetFile
from p2psim.data.sources.hospital import Hospital
from p2psim.data.sources.lending import Lending
from p2psim.data.sources.linear_classification import LinearClassification
from p2psim.data.sources.linear_regression import LinearRegression
from p2psim.data.sources.movielens import MovieLens100K
from p2psim.data.sources.packaged import LendingSmall, Medpar, Schools

register_all(
    [
        Lending, LendingSmall, Hospital, Medpar, Schools, MovieLens100K, CreditCard, LinearRegression,
        LinearClassification, CSVFile, ParquetFile, Arrays,
    ]
)  # fmt: skip

#: Any source that is registered.
AnySource = Annotated[DataSource, AnyOf("source"), BY_NAME]


def describe_sources() -> list[dict[str, str]]:
    """What there is, for people: nothing is read or loaded.

    Returns
    -------
    list of dict
        ``name``, ``about``, ``citation``, ``licence``, ``needs`` (an extra, or a file, or empty), in the
        order of the registry.
    """
    return [
        {
            "name": name,
            "about": source.about,
            "citation": source.citation,
            "licence": source.licence,
            "needs": source.needs,
        }
        for name, source in parts("source").items()
    ]
