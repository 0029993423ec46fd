"""Whose work each commit used (communication timing, F figure 3)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from p2psim.core.errors import InputError
from p2psim.core.events import LEARNER
from p2psim.report import notes, style
from p2psim.report.source import Source

#: Commits an owner beyond which marks run together: only the first ones are shown then.
MARKS_PER_OWNER = 60

#: Owners that are named on the axis.
NAMED = 20


def draw_timing(source: Source) -> dict[str, Figure]:
    """Scatter of agents against the number k of the commit, and their shares, for replica 0 of the first cell.

    On a star an agent is an owner whose answer the commit used (of a round: all whose answers arrived in time);
    without a learner it is the agent whose own model was updated.

    Raises
    ------
    InputError
        If the run recorded no events, or no commit.
    """
    if source.events is None or source.events.empty:
        raise InputError("the run recorded no events; set record.events: true and run again")
    events = source.events.sort_values(["cell", "replica", "seq"], kind="stable")
    cell, replica = events[["cell", "replica"]].iloc[0].tolist()
    events = events[(events["cell"] == cell) & (events["replica"] == replica)]
    commits = events[events["kind"] == "commit"]
    if commits.empty:
        raise InputError(f"there is no commit in replica {replica} of cell {cell}")
    number, owners, word = _used(commits, events[events["kind"] == "deliver"])
    if not len(owners):
        raise InputError(f"no commit of replica {replica} of cell {cell} used an answer")
    names = _names(source, cell, replica, int(owners.max()))
    count = len(names)
    shown = min(len(owners), MARKS_PER_OWNER * count)
    total = int(number[-1])

    figure = style.new_figure(8.4, min(2.8 + 0.16 * count, 7.5))
    main, side = figure.subplots(1, 2, sharey=True, width_ratios=[5, 1])
    figure.set_layout_engine("constrained", wspace=0.06)
    colour = style.line_style(0)["color"]
    size = float(np.clip(260 / count, 14, 90))
    main.scatter(
        number[:shown], owners[:shown], marker="|", s=size, linewidths=1.1, color=colour,
        rasterized=shown > 20_000,
    )  # fmt: skip
    main.set(xlabel=style.AXIS_LABELS["step"], ylabel=word)
    doing = "answered at" if word == "owner" else "updated its model in"
    style.add_title(main, source.title(f"which {word} {doing} each commit"))
    main.margins(x=0.02)
    style.few_ticks(main)
    main.set_ylim(count - 0.5, -0.5)
    if count <= NAMED:
        main.set_yticks(range(count), names)
    main.grid(axis="x", visible=False)
    share = np.bincount(owners, minlength=count) / total
    side.barh(np.arange(count), 100 * share, height=0.7, color=colour, alpha=0.55)
    equal = len(owners) / total / count
    side.axvline(100 * equal, color="0.25", linewidth=1, linestyle="--")
    side.set(xlim=(0, 115 * max(share.max(), equal)), xlabel="share of\ncommits (%)")
    side.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    side.tick_params(labelleft=False)
    side.grid(axis="y", visible=False)
    remarks = [f"Replica {replica} of cell {cell}. Dashed: equal shares."]
    if shown < len(owners):
        first = int(number[shown - 1])
        remarks.append(f"The first {first:,} of {total:,} commits are shown; shares are of all.")
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return {"timing": figure}


def _used(commits: pd.DataFrame, deliveries: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, str]:
    """Numbers k of commits, the agent that each row shows, and what such an agent is called.

    The commit of a round names no owner: it used the answers to its query, which bear the version of the model before
    it and arrived earlier (see the page on events).
    """
    number = np.arange(1, len(commits) + 1)
    if (commits["agent"] != LEARNER).any():
        return number, commits["agent"].to_numpy(dtype=np.int64), "agent"
    if (commits["peer"] >= 0).all():
        return number, commits["peer"].to_numpy(dtype=np.int64), "owner"
    answers = deliveries[deliveries["agent"] == LEARNER]
    k = np.searchsorted(commits["seq"].to_numpy(), answers["seq"].to_numpy()) + 1
    used = (k <= len(commits)) & (answers["version"].to_numpy() == k - 1)
    return k[used], answers["peer"].to_numpy(dtype=np.int64)[used], "owner"


def _names(source: Source, cell: int, replica: int, last: int) -> list[str]:
    """Labels of the owners, those that never answered included."""
    agents = source.agents
    mine = agents[(agents["cell"] == cell) & (agents["replica"] == replica) & (agents["index"] >= 0)]
    labelled = {int(i): str(label) for i, label in zip(mine["index"], mine["label"], strict=True)}
    return [labelled.get(i, str(i)) for i in range(max([last, *labelled]) + 1)]
