"""One replica of a study, simulated in memory: nothing is written."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from p2psim.core.errors import InputError
from p2psim.core.options import Index, Options, given
from p2psim.core.process import one_thread
from p2psim.runs.parts import tables_of
from p2psim.runs.tables import SWEPT_TABLES, WIDE, rank
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario
from p2psim.scenario.tuning import refuse_untuned
from p2psim.simulation import simulate as simulation


@dataclass(frozen=True)
class Simulation:
    """What one replica of one cell gave. Tables have the columns of the run folder's.

    Attributes
    ----------
    scenario : Scenario
        Of the cell, without a sweep.
    cell, replica : int
    swept : dict
        Value of each swept key.
    ended : str
        ``commits``, ``time`` or ``exhausted`` (no agent could act any more).
    metrics : DataFrame
        One row per recorded value.
    ledger : DataFrame
        One row per agent, with what its releases cost.
    agents : DataFrame
        One row per agent, with what it is.
    events : DataFrame
        One row per event.
    links : DataFrame
        One row per link; of a graph that changes, per time that it was there.
    noise : ndarray, shape (releases, p)
        As added to gradients, by agent, then release.
    models : ndarray, shape (records, p), or None
        The learner's recorded models; None on a graph.
    warnings : tuple of str
    """

    scenario: Scenario
    cell: int
    replica: int
    swept: dict[str, object]
    ended: str
    metrics: pd.DataFrame
    ledger: pd.DataFrame
    agents: pd.DataFrame
    events: pd.DataFrame
    links: pd.DataFrame
    noise: np.ndarray
    models: np.ndarray | None
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        name = self.scenario.name
        return f"Simulation({name!r}, cell {self.cell}, replica {self.replica}: {len(self.events)} events)"

    def _repr_html_(self) -> str:
        from html import escape

        keys = ["model", "metric"]
        last = self.metrics.drop_duplicates(keys, keep="last").sort_values(keys)[[*keys, "value"]]
        rows = last.rename(columns={"value": "last value"})
        return f"<p>{escape(repr(self))}</p>{rows.to_html(index=False)}"


class _Chosen(Options):
    """Arguments of `simulate`."""

    replica: Index
    cell: Index


def simulate(scenario: Scenario, replica: int = 0, cell: int = 0) -> Simulation:
    """Simulate one replica of one cell in memory.

    Parameters
    ----------
    scenario : Scenario
    replica : int
        Any from 0: `Scenario.replicas` sets how many :func:`p2psim.run` makes, and replica k of it is the same.
    cell : int
        Number of a combination of swept values, as in the tables of a run.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError
        If there is no such cell, or the data cannot be prepared as the scenario says.
    SimulationError
        If a model or a metric is not finite.

    Examples
    --------
    >>> import p2psim
    >>> scenario = p2psim.Scenario(
    ...     name="three-owners",
    ...     network={"topology": p2psim.Star(agents=3), "exchange": "request"},
    ...     data={"source": p2psim.LinearRegression(dimension=2, points=50)},
    ...     learning={
    ...         "algorithm": p2psim.AsyncStar(horizon=40, rho=1.0, theta_max=2.0),
    ...         "loss": "squared",
    ...         "regularizer": {"l2": 0.01},
    ...     },
    ... )
    >>> simulated = p2psim.simulate(scenario)
    >>> int((simulated.events["kind"] == "commit").sum()), len(simulated.ledger)
    (40, 3)
    """
    refuse_untuned(scenario)
    chosen, grid = given(_Chosen, replica=replica, cell=cell), cells(scenario)
    if chosen.cell >= len(grid):
        raise InputError(f"cell: there are {len(grid)} cells, 0 to {len(grid) - 1}; got {chosen.cell}")
    which = grid[chosen.cell]
    record = which.scenario.record.model_copy(update={"events": True, "models": True})
    whole = which.scenario.model_copy(update={"record": record})
    # BLAS sums in an order that depends on its number of threads: one, as in a run.
    with one_thread():
        outcome = simulation.simulate(whole, chosen.replica, simulation.SESSION.workspace)
    tables = {}
    for name, pieces in tables_of([outcome]).items():
        whole = pa.concat_tables(pieces)
        kinds = WIDE.get(name, {})
        fields = [(field.name, kinds.get(field.name, field.type)) for field in whole.schema]
        table = whole.cast(pa.schema(fields)).to_pandas()
        where: dict[str, Any] = {"cell": chosen.cell, "replica": chosen.replica}
        if name in SWEPT_TABLES:
            where = which.swept | where
        columns = sorted(table, key=partial(rank, name)) if name in ("ledger", "agents") else list(table)
        tables[name] = table.assign(**where)[[*where, *columns]]
    tables["metrics"] = tables["metrics"].astype({"agent": "Int32"})
    results = {name: getattr(outcome, name) for name in ("ended", "noise", "models", "warnings")}
    return Simulation(which.scenario, chosen.cell, chosen.replica, which.swept, **tables, **results)
