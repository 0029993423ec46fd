"""Sources of records. A new one is one file beside these, and one name in `Source`.

A source is a part of the scenario with four constants (``about``, ``citation``, ``licence``, ``needs``),
``generated`` (drawn, not read) and ``load(request)``, which gives a `Table` or records `Held`.
"""

from typing import Annotated, get_args

from pydantic import Field

from p2psim.data.sources.arrays import Arrays
from p2psim.data.sources.creditcard import CreditCard
from p2psim.data.sources.csv_file import CSVFile
from p2psim.data.sources.hospital import Hospital
from p2psim.data.sources.lending import Lending
from p2psim.data.sources.lending_small import LendingSmall
from p2psim.data.sources.linear_classification import LinearClassification
from p2psim.data.sources.linear_regression import LinearRegression
from p2psim.data.sources.medpar import Medpar
from p2psim.data.sources.movielens import MovieLens100K
from p2psim.data.sources.parquet_file import ParquetFile
from p2psim.data.sources.schools import Schools
from p2psim.options import BY_NAME

Source = Annotated[
    Lending
    | LendingSmall
    | Hospital
    | Medpar
    | Schools
    | MovieLens100K
    | CreditCard
    | LinearRegression
    | LinearClassification
    | CSVFile
    | ParquetFile
    | Arrays,
    Field(discriminator="kind"),
    BY_NAME,
]


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
            "name": source.model_fields["kind"].default,
            "about": source.about,
            "citation": source.citation,
            "licence": source.licence,
            "needs": source.needs,
        }
        for source in get_args(get_args(Source)[0])
    ]
