"""The space-time diagram of one replica: a lane for each agent, messages as arrows, and what went wrong in red."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from p2psim.core.errors import InputError
from p2psim.core.events import LEARNER
from p2psim.report import panels, scales, style
from p2psim.report.figures import timing
from p2psim.report.source import Source

#: Messages and lanes that can be told apart.
MESSAGES, LANES = 160, 30

#: Outcomes of a message that went wrong, in words.
WRONG = {
    "loss": "lost",
    "collision": "collided",
    "offline": "receiver offline",
    "busy": "sender busy",
    "gave-up": "gave up",
    "superseded": "superseded",
}


def draw_spacetime(source: Source) -> dict[str, Figure]:
    """Messages between lanes, around the first one that did not arrive, or from the start where all did.

    Raises
    ------
    InputError
        If the run recorded no events, or no message.
    """
    cell, replica, events = timing.events_of_one(source, wrong=True)
    names = timing.names_of_agents(source, cell, replica, int(events["agent"].max()))
    lanes = list(range(min(len(names), LANES)))
    if (events["agent"] == LEARNER).any():
        lanes = [LEARNER, *lanes]
    row = {agent: float(place) for place, agent in enumerate(lanes)}
    sent = messages(events)
    sent = sent[sent["sender"].isin(lanes) & sent["receiver"].isin(lanes)].sort_values("start", kind="stable")
    if sent.empty:
        raise InputError(f"there is no message in replica {replica} of cell {cell}")
    first, last = float(sent["start"].min()), float(sent["stop"].max())
    start, stop = _window(sent)
    sent = sent[(sent["stop"] >= start) & (sent["start"] <= stop)]
    inside = events[(events["time"] >= start) & (events["time"] <= stop) & events["agent"].isin(lanes)]

    figure, axes = style.new_axes(style.lines_high(5 + max(8.0, min(1.5 * len(lanes), 26))))
    margin = 0.01 * (stop - start)
    axes.set(xlim=(start - margin, stop + margin), ylim=(len(lanes) - 0.5, -0.5))
    away = timing.absences(events, stop)
    away = away[away["agent"].isin(lanes) & (away["stop"] >= start)]
    timing.draw_absences(axes, away, row)
    airtime = source.says("network.channel.airtime")
    if isinstance(airtime, int | float) and airtime > 0:
        _airtime(axes, sent, row, float(airtime))
    _arrows(axes, sent, row)
    commits = inside[inside["kind"] == "commit"]
    lane = [row[a] for a in commits["agent"]]
    style.mark(axes, commits["time"], lane, "|", 8, "black", markeredgewidth=1.2)
    releases = releases_of(inside)
    places = [row[agent] for agent in releases["agent"]]
    style.mark(axes, releases["time"], places, "o", 4, style.colours(3)[2], markeredgewidth=0, zorder=4)
    axes.set_yticks(range(len(lanes)), ["learner" if agent == LEARNER else names[agent] for agent in lanes])
    axes.set_xlabel(style.AXIS_LABELS["time"])
    axes.grid(axis="x", visible=False)
    scales.few_ticks(axes)
    wrong = [WRONG.get(outcome, outcome) for outcome in dict.fromkeys(sent["outcome"]) if outcome != "ok"]
    entries: list[tuple[str, Any]] = [("message", Line2D([], [], color="0.45"))]
    if wrong:
        entries.append((f"not arrived: {', '.join(wrong)}", Line2D([], [], color=style.ALARM, marker="x")))
    entries += [("update of a model", Line2D([], [], color="black", marker="|", linestyle="none"))]
    if len(releases):
        entries.append(("release", Line2D([], [], color=style.colours(3)[2], marker="o", linestyle="none")))
    entries += [("offline", Patch(color="0.85"))] if len(away) else []
    style.put_legend(figure, entries)
    end = float(events["time"].max())
    remarks = [f"{timing.one_replica(source, cell, replica)}: "]
    if start <= first and stop >= last:
        remarks[0] += f"all {len(sent)} messages."
    else:
        remarks[0] += f"{len(sent)} messages from time {start:.3g} to {stop:.3g}; the run ends at {end:.3g}."
    if len(names) > LANES:
        remarks[0] += f" The first {LANES} of {len(names)} agents, and what they send each other."
    panels.finish(figure, source, "messages between agents", remarks)
    return {"spacetime": figure}


def messages(events: pd.DataFrame) -> pd.DataFrame:
    """Messages: ``sender``, ``receiver``, ``start``, ``stop``, ``outcome`` (``ok`` where it arrived)."""
    ends = events[events["kind"].isin(["deliver", "drop"]) & (events["peer"] >= LEARNER)]
    sends = events.loc[events["kind"] == "send", ["seq", "time"]].set_index("seq")["time"]
    outcome = np.where(ends["kind"] == "deliver", "ok", ends["outcome"].astype(str))
    named = ends.rename(columns={"peer": "sender", "agent": "receiver", "time": "stop"})
    table = named.assign(start=ends["cause"].map(sends), outcome=outcome).dropna(subset="start")
    return table[["sender", "receiver", "start", "stop", "outcome"]]


def _window(sent: pd.DataFrame) -> tuple[float, float]:
    """First and last time that is shown."""
    wrong = np.flatnonzero(sent["outcome"] != "ok")
    first = max(0, int(wrong[0]) - MESSAGES // 4) if wrong.size else 0
    shown = sent.iloc[first : first + MESSAGES]
    start, stop = float(shown["start"].min()), float(shown["stop"].max())
    return start, stop if stop > start else start + 1.0


def _airtime(axes: Axes, sent: pd.DataFrame, row: dict[int, float], airtime: float) -> None:
    """Bars for as long as senders occupy the medium."""
    for outcome, colour in (("ok", "0.6"), ("collision", style.ALARM)):
        of = sent[(sent["outcome"] == outcome) & (sent["stop"] > sent["start"])]
        lane = [row[a] for a in of["sender"]]
        axes.barh(lane, airtime, left=of["start"], height=0.35, color=colour, alpha=0.6)


def _arrows(axes: Axes, sent: pd.DataFrame, row: dict[int, float]) -> None:
    for arrived, colour in ((True, "0.45"), (False, style.ALARM)):
        of = sent[(sent["outcome"] == "ok") == arrived]
        ends = np.array([[row[a] for a in of["sender"]], [row[a] for a in of["receiver"]]]).reshape(2, -1)
        times = of[["start", "stop"]].to_numpy(dtype=float).T
        segments = np.stack([np.stack([times[0], ends[0]], 1), np.stack([times[1], ends[1]], 1)], 1)
        arrows = LineCollection(
            list(segments), colors=[colour], linewidths=0.07 * style.page().font, zorder=2
        )
        axes.add_collection(arrows)
        down = ends[1] > ends[0]
        markers = (("v", down), ("^", ~down)) if arrived else (("x", np.ones(len(of), dtype=bool)),)
        for marker, which in markers:
            style.mark(axes, times[1][which], ends[1][which], marker, 4, colour, zorder=3)
        style.note(axes, "arrived" if arrived else "not arrived", times[1], ends[1])


def releases_of(events: pd.DataFrame) -> pd.DataFrame:
    """First event of each release, at the agent that made it."""
    released = (events["release"] >= 0) & (events["agent"] != LEARNER)
    return events[events["kind"].isin(["send", "commit"]) & released].drop_duplicates(["agent", "release"])
