"""Final ψ against ε (F figure 4)."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.errors import InputError
from p2psim.report.points import points
from p2psim.report.power import power_figure
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEY = "privacy.epsilon"


def draw_epsilon(source: Source) -> "dict[str, Figure]":
    """Medians with 25 to 75 % bars, slope with its interval, and the fitted F (11), log-log.

    Raises
    ------
    InputError
        If the run does not sweep ``privacy.epsilon`` over at least two numbers.
    """
    metric = source.metric or FITNESS
    rows = source.rows(metric)
    if KEY not in source.swept:
        swept = ", ".join(source.swept) or "nothing"
        raise InputError(
            f"the run has no sweep over {KEY} (it sweeps {swept}); add `sweep: {{{KEY}: [1, 10, 100]}}`"
        )
    cells = rows.drop_duplicates("cell").set_index("cell")[KEY]
    values = pd.to_numeric(cells, errors="coerce").astype(float)
    if values.isna().any():
        raise InputError(
            f"{KEY} must be one number for all owners in every cell, got {cells[values.isna()].iloc[0]}"
        )
    if values[np.isfinite(values)].nunique() < 2:
        raise InputError(f"{KEY} must take at least two finite values, got {sorted(values.unique())}")
    lines = points(
        source, metric, dict(zip(map(int, values.index), values.tolist(), strict=True)), hide=[KEY]
    )
    stem = "epsilon" if metric == FITNESS else f"epsilon-{metric}"
    return {stem: power_figure(source, metric, lines, "epsilon", "ε")}
