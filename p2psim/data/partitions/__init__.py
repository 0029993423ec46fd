"""Partitions: who holds which rows. A new one is one file beside these, and one name in the list below."""

from typing import Annotated, Any

import numpy as np

from p2psim.core.options import BY_NAME
from p2psim.core.registry import AnyOf, register_all
from p2psim.data.columns import require
from p2psim.data.partitions.base import Partition, check_agents, check_division
from p2psim.data.partitions.sizes import ByColumn, Contiguous, Dirichlet, Equal, OfSizes, Shards, Unbalanced

register_all([Contiguous, OfSizes, Equal, ByColumn, Shards, Dirichlet, Unbalanced])

#: Any partition that is registered.
AnyPartition = Annotated[Partition, AnyOf("partition"), BY_NAME]

__all__ = [
    "AnyPartition",
    "ByColumn",
    "Contiguous",
    "Dirichlet",
    "Equal",
    "OfSizes",
    "Partition",
    "Shards",
    "Unbalanced",
    "check_agents",
    "check_division",
    "values_for",
]


def values_for(partition: Partition, columns: Any) -> Any:
    """Values of the column that a partition divides by, or None.

    Raises
    ------
    MeaningError
        If there is no such column.
    """
    if partition.divides_by is None:
        return None
    require(columns, partition.divides_by, "data.partition.column")
    import pandas as pd

    column = columns[partition.divides_by]
    return column if isinstance(column, pd.Categorical) else np.asarray(column)
