"""What the releases of a finished run cost, drawn up once more, for accountants that its scenario did not name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import FolderError, check_place
from p2psim.privacy.ledger import Claims, real_charges
from p2psim.privacy.releases import joined
from p2psim.privacy.violations import Violations
from p2psim.study.families import family_of
from p2psim.study.streams import streams_of
from p2psim.study.tape import Tape
from p2psim.study.verification import scenarios_of
from p2psim.study.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

    from p2psim.privacy.accounting.charges import Charges
    from p2psim.study.result import Result
    from p2psim.study.scenario import Scenario


@dataclass(frozen=True)
class Recounted:
    """Releases of one simulation.

    Attributes
    ----------
    cell, replica : int
    scenario : Scenario
    charges : Charges
        Of its agents, for their real records.
    ledger : DataFrame
        Its rows, by agent.
    """

    cell: int
    replica: int
    scenario: Scenario
    charges: Charges
    ledger: pd.DataFrame


def recount(result: Result, only: int | None = None) -> Iterator[Recounted]:
    """Draw up the charges of every simulation of a run folder.

    Data are prepared and events made again, as the scenario says; nothing is learned. Which bounds the data broke is
    taken from the ledger.

    Parameters
    ----------
    result : Result
    only : int, optional
        The only cell that is wanted.

    Raises
    ------
    InputError
        If there is no such cell, or a data file is not there any more.
    FolderError
        If the releases are not those of the ledger: data or p2psim have changed since.
    """
    if only is not None:
        check_place("cell", only, len(result.described.cells))
    with tempfile.TemporaryDirectory(prefix="p2psim-") as directory:
        workspace, tape = Workspace(Path(directory)), Tape()
        for number, scenario in scenarios_of(result):
            content = result.described.cells[number].content
            for key in sorted(result.described.runs):
                if key[0] == content and only in (None, number):
                    yield _recounted(result, number, key[1], scenario, workspace, tape)


def _recounted(
    result: Result, cell: int, replica: int, scenario: Scenario, workspace: Workspace, tape: Tape
) -> Recounted:
    rows = _rows(result, cell, replica)
    charges = _charges(scenario, replica, workspace, tape, rows)
    if not np.array_equal(charges.made, rows["releases"].to_numpy()):
        raise FolderError(
            f"{result.path}: the releases of cell {cell}, replica {replica} are not those of the ledger; "
            "data or p2psim have changed since"
        )
    return Recounted(cell, replica, scenario, charges, rows)


def _rows(result: Result, cell: int, replica: int) -> pd.DataFrame:
    ledger = result.ledger
    return ledger[(ledger["cell"] == cell) & (ledger["replica"] == replica)].sort_values("agent")


def _charges(
    scenario: Scenario, replica: int, workspace: Workspace, tape: Tape, rows: pd.DataFrame
) -> Charges:
    case = workspace.case(scenario, replica)
    cell = family_of(scenario).cell(scenario, case, replica)
    stage, streams, engine = cell.stage, streams_of(scenario, replica), scenario.network.engine
    totals = stage.plan.totals(piece.releases for piece in tape.play(stage, streams, engine, False))
    releases = joined([piece.releases for piece in tape.play(stage, streams, engine, False)])
    broken = Violations(
        rows["bound_violated"].to_numpy().astype(np.int64),
        rows["violation_step"].to_numpy(),
        rows["violation_size"].to_numpy(),
    )
    return real_charges(stage.plan, Claims.of(stage.plan, releases, totals), cell.caveats(broken))
