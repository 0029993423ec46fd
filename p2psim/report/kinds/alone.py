"""Who gains? ψ that each owner reaches alone against its records, beside what all reach together (F, hospitals)."""

from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import InputError
from p2psim.report import notes, style
from p2psim.report.curves import finals, labels, quartiles
from p2psim.report.kinds.collaboration import ALONE
from p2psim.report.source import FITNESS, Float, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_alone(source: Source) -> "dict[str, Figure]":
    """A point for each owner, and for each cell a horizontal line with its band.

    Raises
    ------
    InputError
        If ψ or isolated ψ was not recorded, another metric is asked for, or owners differ between cells.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"alone draws {FITNESS} and {ALONE}")
    records, own = owners(source)
    together = finals(source, FITNESS)
    together = together[together["model"] == "main"]
    named = labels(source.swept, together)
    figure = style.new_figure(8.4, 4.8)
    axes = figure.add_subplot()
    style.log_ticks(axes)
    if source.log is not False:
        axes.set_yscale("log", nonpositive="mask")
    axes.plot(
        records,
        own,
        linestyle="none",
        marker="o",
        markersize=5,
        color="0.35",
        label=f"each of {len(own)} owners, alone",
    )
    remarks = []
    for index, (_, group) in enumerate(together.groupby("cell", sort=True)):
        look = style.line_style(index)
        low, median, high = quartiles(group["value"].to_numpy(dtype=float)[None, :], source.band)[:, 0]
        label = named[tuple(group[[*source.swept, "model"]].iloc[0])]
        axes.axhspan(low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.axhline(
            median, color=look["color"], linestyle=look["linestyle"], linewidth=1.6, label=label or "together"
        )
        gain = int(np.sum(own > median))
        remarks.append(f"{gain} of {len(own)} owners gain by joining{notes.of(label)}.")
    axes.set_xlabel("records of the owner (number)")
    axes.set_ylabel(style.metric_label(FITNESS))
    style.add_title(axes, source.title("each owner alone, and all together"))
    style.add_legend(figure, axes)
    counts = notes.replicas(together.groupby("cell")["replica"].nunique().tolist())
    first = (
        f"Point: ψ of the optimum of an owner's own records, without noise. Line: median of the final ψ over {counts}; "
        f"band: {source.band_words}."
    )
    style.add_footnote(figure, [first, *remarks, *notes.run_notes(source)])
    return {"alone": figure}


def owners(source: Source) -> tuple[Float, Float]:
    """Records and isolated ψ of each owner, of the first replica.

    Raises
    ------
    InputError
        If they differ between cells.
    """
    rows = source.rows(ALONE)
    first = rows[rows["replica"] == rows["replica"].min()].drop_duplicates(["cell", "agent"], keep="last")
    by_cell = [part.sort_values("agent") for _, part in first.groupby("cell", sort=True)]
    own = by_cell[0]["value"].to_numpy(dtype=float)
    for part in by_cell[1:]:
        if len(part) != len(own) or not np.allclose(part["value"], own, rtol=1e-9, atol=0):
            raise InputError(
                "owners differ between cells; draw a figure for each value that changes them: --facet KEY"
            )
    agents = source.agents
    mine = agents[
        (agents["cell"] == by_cell[0]["cell"].iloc[0]) & (agents["replica"] == rows["replica"].min())
    ]
    records = mine.set_index("index")["records"].loc[by_cell[0]["agent"].astype(int)]
    return records.to_numpy(dtype=float), own
