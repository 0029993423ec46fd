"""Says whose records broke a bound that was claimed, when, and by how much."""

from typing import TYPE_CHECKING

from p2psim.printing import counted

if TYPE_CHECKING:
    import pandas as pd


def broken_bounds(ledger: "pd.DataFrame") -> list[str]:
    """One line a cell in which a bound was broken: how many agents did, and who did most.

    Parameters
    ----------
    ledger : DataFrame
        Of a run folder. Rows of earlier versions, which do not say when and by how much, are left out.
    """
    if "violation_size" not in ledger:
        return []
    broken = ledger[ledger["violation_size"].fillna(0.0) > 0]
    lines = []
    for cell, rows in broken.groupby("cell", sort=True):
        worst = rows.iloc[int(rows["violation_size"].to_numpy().argmax())]
        agent, replica, step = (int(worst[name]) for name in ("agent", "replica", "violation_step"))
        who = (
            f"{counted(rows['agent'].nunique(), 'agent')} in {counted(rows['replica'].nunique(), 'replica')}"
        )
        lines.append(
            f"cell {cell}: the claimed bound was broken by {who}; most by agent {agent} of replica {replica}, "
            f"{worst['violation_size']:.3g} times the bound, first at step {step}"
        )
    return lines
