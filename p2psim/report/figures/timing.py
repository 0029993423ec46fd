"""Whose work each commit used, and when (communication timing, F figure 3); who was offline, and who waited."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from p2psim.core.errors import InputError
from p2psim.core.events import FAILURES, LEARNER, OUTCOMES
from p2psim.report import panels, scales, style
from p2psim.report.channels import Plan
from p2psim.report.source import Source, of_run
from p2psim.report.words import visible

#: Commits an owner beyond which marks run together: only the first ones are shown then.
MARKS_PER_OWNER = 60

#: Outcomes of messages that the network did not deliver.
FAILED = tuple(OUTCOMES[code] for code in FAILURES)

#: Owners that are named on the axis.
NAMED = 30


def events_of_one(source: Source, wrong: bool = False) -> tuple[int, int, pd.DataFrame]:
    """Cell, replica and events of the first recorded replica, in order; if asked, the first where messages failed.

    Raises
    ------
    InputError
        If the run recorded no events.
    """
    if source.events is None or source.events.empty:
        raise InputError("the run recorded no events; set record.events: true and run again")
    events = source.events
    failed = events[(events["kind"] == "drop") & events["outcome"].isin(FAILED)] if wrong else events.iloc[:0]
    looked = failed if len(failed) else events
    cell, replica = looked.sort_values(["cell", "replica"])[["cell", "replica"]].iloc[0]
    mine = of_run(events, cell, replica).sort_values("seq", kind="stable", ignore_index=True)
    return int(cell), int(replica), mine


def one_replica(source: Source, cell: int, replica: int) -> str:
    """Which replica is drawn, as footnotes begin: its cell in words, and by the number that `p2psim report` takes."""
    label = Plan(source, panels=False).of_cell[cell].label
    return f"One replica (cell {cell}: {label}; replica {replica})" if label else f"One replica ({replica})"


def draw_timing(source: Source) -> dict[str, Figure]:
    """Marks of agents at the time of each commit that used their work, and their shares, of one replica.

    On a star an agent is an owner whose answer the commit used (of a round: all whose answers arrived in time);
    without a learner it is the agent whose own model was updated. Grey: offline; red: refused or queued.

    Raises
    ------
    InputError
        If the run recorded no events, or no commit.
    """
    cell, replica, events = events_of_one(source)
    commits = events[events["kind"] == "commit"]
    if commits.empty:
        raise InputError(f"there is no commit in replica {replica} of cell {cell}")
    number, owners, word = _used(commits, events[events["kind"] == "deliver"])
    if not len(owners):
        raise InputError(f"no commit of replica {replica} of cell {cell} used an answer")
    names = names_of_agents(source, cell, replica, int(owners.max()))
    count = len(names)
    shown, total = min(len(owners), MARKS_PER_OWNER * count), int(number[-1])
    times = commits["time"].to_numpy(dtype=float)[number - 1]
    end = float(times[shown - 1]) if shown < len(owners) else float(events["time"].max())

    figure = style.new_figure(style.lines_high(6 + min(1.25 * count, 24)))
    main, side = figure.subplots(1, 2, sharey=True, width_ratios=[5, 1])
    colour = style.colours(1)[0]
    away = absences(events, end)
    draw_absences(main, away)
    refused = _refused(events, end)
    size = float(np.clip(240 / count, 8, 80)) * (style.page().font / 10.5) ** 2
    mark = {"marker": "|", "s": size, "linewidths": 0.1 * style.page().font}
    for at, who, color, alpha in (
        (refused["time"], refused["agent"], style.ALARM, 0.7),
        (times[:shown], owners[:shown], colour, 1.0),
    ):
        main.scatter(at, who, color=color, alpha=alpha, rasterized=len(at) > 20_000, **mark)
    style.note(main, "commits", times[:shown], owners[:shown])
    main.set(xlabel=style.AXIS_LABELS["time"], ylabel=word)
    main.set(xlim=(-0.01 * end, 1.01 * end), ylim=(count - 0.5, -0.5))
    if count <= NAMED:
        main.set_yticks(range(count), names)
    scales.few_ticks(main)
    main.grid(visible=False)
    share = np.bincount(owners, minlength=count) / total
    side.barh(np.arange(count), 100 * share, height=0.7, color=colour, alpha=0.55)
    equal = len(owners) / total / count
    side.axvline(100 * equal, color="0.25", linewidth=1, linestyle="--")
    side.set(xlim=(0, 115 * max(share.max(), equal)), xlabel="share of\ncommits (%)")
    side.xaxis.set_major_locator(MaxNLocator(nbins=3, steps=[1, 2, 5, 10]))
    side.tick_params(labelleft=False)
    side.grid(axis="y", visible=False)
    used = "answer used" if word == "owner" else "update"
    entries: list[tuple[str, Any]] = [(used, Line2D([], [], color=colour, marker="|", linestyle="none"))]
    if len(refused):
        entries.append(("refused or queued", Line2D([], [], color=style.ALARM, marker="|", linestyle="none")))
    entries += [("offline", Patch(color="0.85"))] if len(away) else []
    style.put_legend(figure, entries)
    remarks = f"{one_replica(source, cell, replica)}. Dashed: equal shares."
    if shown < len(owners):
        remarks += f" The first {int(number[shown - 1]):,} of {total:,} commits are shown; shares are of all."
    title = f"which {word} {'answered at' if word == 'owner' else 'updated its model in'} each commit"
    panels.finish(figure, source, title, [remarks])
    return {"timing": figure}


def _refused(events: pd.DataFrame, end: float) -> pd.DataFrame:
    """Wakes that the learner refused or had wait, until a time."""
    refused = (events["kind"] == "wake") & events["outcome"].isin(["busy", "queued", "offline"])
    return events[refused & (events["time"] <= end)]


def absences(events: pd.DataFrame, end: float) -> pd.DataFrame:
    """Spans in which agents are away: ``agent``, ``start``, ``stop``, from their events join and leave."""
    changes = events[events["kind"].isin(["join", "leave"])]
    spans = []
    for agent, of_one in changes.groupby("agent", sort=True):
        since = None if of_one["kind"].iloc[0] == "leave" else 0.0
        for kind, time in zip(of_one["kind"], of_one["time"], strict=True):
            if kind == "leave" and since is None:
                since = float(time)
            elif kind == "join" and since is not None:
                spans.append((agent, since, min(float(time), end)))
                since = None
        if since is not None:
            spans.append((agent, since, end))
    table = pd.DataFrame(spans, columns=["agent", "start", "stop"])
    return table[table["stop"] > table["start"]]


def draw_absences(axes: Axes, away: pd.DataFrame, row: dict[int, float] | None = None) -> None:
    """Draw spans of absence in grey behind the lanes of agents."""
    rows = [float(agent) if row is None else row[int(agent)] for agent in away["agent"]]
    start, stop = away["start"], away["stop"]
    axes.barh(rows, stop - start, left=start, height=0.9, color="0.85", linewidth=0, zorder=0)


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


def names_of_agents(source: Source, cell: int, replica: int, last: int) -> list[str]:
    """Labels of the owners, those that never answered included."""
    agents = of_run(source.agents, cell, replica)
    mine = agents[agents["index"] >= 0]
    labelled = {int(i): visible(str(label)) for i, label in zip(mine["index"], mine["label"], strict=True)}
    return [labelled.get(i, str(i)) for i in range(max([last, *labelled]) + 1)]
