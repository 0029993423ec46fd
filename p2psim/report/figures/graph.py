"""The graph of one replica: agents by what they reached, links by what failed on them; and agents by their degree."""

import math

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.events import LEARNER
from p2psim.report import notes, panels, style
from p2psim.report.figures.agents import by_number, last_values, metrics_of_agents, with_number
from p2psim.report.figures.spacetime import messages
from p2psim.report.figures.timing import events_of_one, names_of_agents, one_replica
from p2psim.report.source import Source, of_run
from p2psim.report.words import number, words

#: More agents than this are a cloud.
MOST = 2000
#: As many agents have their names beside them.
NAMES = 40

#: Numbers of the table of agents that the metric of an agent is drawn against, and their words.
PLACES = {"degree": "number of neighbours", "betweenness_centrality": "betweenness centrality (fraction)"}


def links_of(source: Source, cell: int, replica: int) -> pd.DataFrame:
    """Links of one simulation: ``a``, ``b``, each once; −1 is the learner.

    Raises
    ------
    InputError
        If the run did not record them.
    """
    links = getattr(source.result, "links", None)
    if links is None:
        raise InputError("the run recorded no links; set record.events: true and run again")
    return of_run(links, cell, replica)[["a", "b"]].drop_duplicates().astype(int)


def draw_graph(source: Source) -> dict[str, Figure]:
    """Agents in colours by the metric asked for, ε spent, or degree; links red where messages failed.

    Raises
    ------
    InputError
        If the run recorded no events, or has too many agents.
    """
    import networkx as nx

    cell, replica, events = events_of_one(source, wrong=True)
    links = links_of(source, cell, replica)
    what, values = _colour(source, cell, replica)
    if len(values) > MOST:
        raise InputError(f"{len(values)} agents are too many to draw their graph; up to {MOST:,} are drawn")
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(values.index)
    graph.add_edges_from(zip(links["a"], links["b"], strict=True))
    places = (
        nx.kamada_kawai_layout(graph)  # which lays the parts of an unconnected graph over each other
        if len(graph) <= 150 and nx.is_connected(graph)
        else nx.spring_layout(graph, seed=0)
    )
    failed = _failures(events)
    figure, axes = style.new_axes(0.72 * style.page().width)
    ends = [(min(a, b), max(a, b)) for a, b in graph.edges]
    shares = np.array([failed.get(pair, 0.0) for pair in ends])
    segments = [(places[a], places[b]) for a, b in ends]
    some = bool(shares.any())
    shades = colormaps["Reds"](0.25 + 0.6 * shares / max(float(shares.max()), 1e-9)) if some else ["0.7"]
    widths = 0.05 * style.page().font + 1.6 * shares
    axes.add_collection(LineCollection(segments, colors=shades, zorder=1, linewidths=widths))
    size = float(np.clip(6000 / len(values), 12, 220)) * (style.page().font / 10.5) ** 2
    at = np.array([places[agent] for agent in values.index])
    dots = axes.scatter(
        at[:, 0], at[:, 1], c=values, s=size, edgecolor="white", linewidth=0.5, zorder=2, plotnonfinite=True,
        cmap=colormaps["viridis"].with_extremes(bad="0.75"),
    )  # fmt: skip
    if LEARNER in places:
        x, y = map(float, places[LEARNER])
        axes.scatter([x], [y], marker="s", s=1.6 * size, color="black", zorder=2)
        axes.annotate("learner", (x, y), xytext=(12, 10), textcoords="offset points", zorder=3)
    names = names_of_agents(source, cell, replica, len(values) - 1)
    if len(values) <= NAMES:
        away = 0.4 * math.sqrt(size) + 1
        for agent, place in zip(values.index, at, strict=True):
            axes.annotate(
                names[agent], place, xytext=(0, -away), textcoords="offset points", ha="center", va="top",
                fontsize=max(6.0, 0.75 * style.page().font), zorder=4,
                bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.5},
            )  # fmt: skip
    axes.set_aspect("equal")
    # Agents in one line, or a single one, still have room above and below.
    every = np.array(list(places.values()))
    half = 0.55 * np.ptp(every, axis=0)
    half = np.maximum(half, 0.3 * (half.max() or 1.0))
    middle = (every.min(axis=0) + every.max(axis=0)) / 2
    (left, low), (right, high) = middle - half, middle + half
    axes.set(xlim=(left, right), ylim=(low, high))
    axes.set_axis_off()
    known = values[np.isfinite(values)]
    if known.nunique() > 1:
        bar = figure.colorbar(dots, ax=axes, shrink=0.8)
        bar.set_label(style.in_lines(what, 40))
        bar.outline.set_visible(False)
    style.note(axes, "agents", values.index, values)
    counts = f"{notes.counted([len(values)], 'agent')}, {notes.counted([len(ends)], 'link')}"
    remark = f"{one_replica(source, cell, replica)}: {counts}"
    remark += f"; red: up to {100 * shares.max():.0f} % of the messages of a link failed." if some else "."
    short = what.split(",")[0].split(" (")[0]
    remarks = [remark]
    if known.nunique() == 1:
        remarks.append(f"The same for all agents: {short} {number(float(known.iloc[0]))}.")
    if len(known) < len(values):
        remarks.append(
            f"Grey: {short} undefined or infinite, of {len(values) - len(known)} of {len(values)} agents."
        )
    panels.finish(figure, source, f"the graph, by {short}", remarks)
    return {"graph": figure}


def _colour(source: Source, cell: int, replica: int) -> tuple[str, "pd.Series[float]"]:
    """Label and value of each agent."""
    try:
        metric = metrics_of_agents(source)[0]
    except InputError:
        if source.metric is not None:
            raise
    else:
        table = last_values(source, metric).query("cell == @cell and replica == @replica and model == 'main'")
        if len(table):
            return style.metric_label(metric), table.set_index("agent")["value"].astype(float).sort_index()
    ledger = of_run(source.ledger, cell, replica).set_index("agent")
    spent = ledger["epsilon_claimed"].astype(float).sort_index()
    if np.isfinite(spent).all() and spent.nunique() > 1:
        return "privacy spent ε", spent
    agents = of_run(source.agents, cell, replica).set_index("index")
    return "number of neighbours", agents["degree"].astype(float).sort_index()


def _failures(events: pd.DataFrame) -> dict[tuple[int, int], float]:
    """Share of the messages over each link that did not arrive."""
    sent = messages(events)
    low, high = np.minimum(sent["sender"], sent["receiver"]), np.maximum(sent["sender"], sent["receiver"])
    shares = (sent["outcome"] != "ok").groupby([low, high]).mean()
    return {(int(a), int(b)): float(share) for (a, b), share in shares.items()}  # type: ignore[misc, has-type]


def draw_degree(source: Source) -> dict[str, Figure]:
    """Last values of single agents against their number of neighbours, and against their betweenness.

    Raises
    ------
    InputError
        If no metric was recorded of single agents, or all agents have the same place in the graph.
    """
    figures = {}
    for metric in metrics_of_agents(source):
        for column, what in PLACES.items():
            if column not in source.agents or source.agents[column].nunique() < 2:
                continue
            table = with_number(source, metric, column)
            stem = f"degree-{metric}" if column == "degree" else f"degree-betweenness-{metric}"
            figures[stem] = by_number(source, metric, table, column, what, f"{words(column.split('_')[0])}")
    if not figures:
        raise InputError("all agents have the same number of neighbours, so there is nothing to draw against")
    return figures
