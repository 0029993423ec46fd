"""Small recorded runs of each kind that a page plays, their pages, and a plain replay of their events."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import small_study as small
from graph_cases import graph_tree

import p2psim
from p2psim.report.page import page
from p2psim.scenario.model import Scenario

#: ε that a release costs where noise is pure: the budget over the releases that it is for.
STAR_COST, GRAPH_COST = 10 / 20, 20 / 4


def star(exchange: Any, agents: int = 4, algorithm: dict[str, Any] | None = None, **network: Any) -> Scenario:
    tree = small.tree(replicas=1, sweep={})
    tree["network"] = {"topology": {"kind": "star", "agents": agents}, "exchange": exchange, **network}
    tree["privacy"] |= {"allocation": {"kind": "cap", "releases": 20}}
    tree["learning"]["algorithm"] = algorithm or tree["learning"]["algorithm"] | {"horizon": 60}
    return Scenario.from_dict(tree)


def graph() -> Scenario:
    tree = graph_tree()
    tree["network"]["channel"] = {"latency": {"exponential": 0.1}, "loss": 0.2}
    return Scenario.from_dict(tree | {"replicas": 1, "record": {"every": 5, "events": True}})


def training() -> Scenario:
    tree = small.tree(replicas=1, sweep={}, privacy={"mechanism": "none"})
    tree["network"] = {
        "topology": {"kind": "ring", "agents": 5},
        "exchange": {"kind": "synchronous", "deadline": 1.0},
        "channel": {"latency": {"exponential": 0.6}},
    }
    tree["learning"]["algorithm"] = {
        "kind": "decentralised-sgd",
        "order": "gossip-then-gradient",
        "step": 0.1,
        "batch": {"kind": "fixed", "size": 4},
        "updates_per_agent": 8,
    }
    tree["record"] = {"metrics": ["objective_gap"], "every": 5, "events": True}
    return Scenario.from_dict(tree)


ROUNDS = {"kind": "synchronous-averaging", "horizon": 12, "c1": 2.0, "theta_max": 3}
#: Scenario of each kind, and ε of a release where there is noise.
CASES = {
    "star": (lambda: star({"kind": "request", "service": 0.3, "busy": "queue"}), STAR_COST),
    "graph": (graph, GRAPH_COST),
    "shared channel": (
        lambda: star(
            {"kind": "poll", "interval": 1.0, "response": {"exponential": 0.2}},
            8,
            channel={"airtime": 0.1, "collision": "aloha", "shared": True},
        ),
        STAR_COST,
    ),
    "dropouts": (
        lambda: star(
            "request",
            availability={"kind": "renewal", "up": 2.0, "down": 2.0},
            channel={"latency": {"exponential": 0.3}},
        ),
        STAR_COST,
    ),
    "rounds": (
        lambda: star(
            {"kind": "round", "interval": 0.5, "response": {"exponential": 0.5}, "deadline": 0.5}, 5, ROUNDS
        ),
        STAR_COST,
    ),
    "d-psgd": (training, None),
}


@dataclass(frozen=True)
class Case:
    """A run with its page, each made when it is first asked for."""

    name: str
    folder: Path
    cost: float | None

    @cached_property
    def result(self) -> p2psim.Result:
        return p2psim.run(CASES[self.name][0](), self.folder, jobs=1, progress=False)

    @cached_property
    def file(self) -> Path:
        html = page(self.result, question="What happened?")
        file = self.folder.parent / f"{self.name.replace(' ', '-')}.html"
        file.write_text(html, encoding="utf-8")
        return file


def make_cases(folder: Path) -> dict[str, Case]:
    return {name: Case(name, folder / name, cost) for name, (_, cost) in CASES.items()}


def replayed(case: Case, last: int) -> dict[str, Any]:
    """What holds after an event, read off the tables event by event."""
    result = case.result
    events, links = result.events, result.links
    assert events is not None
    assert links is not None
    n = len(result.agents)
    turns: pd.DataFrame = events[events["kind"].isin(["join", "leave"])]
    present = np.ones(n, bool)
    for agent, rows in turns.groupby("agent"):
        if agent >= 0:
            present[agent] = rows["kind"].iloc[0] == "leave"
    state: dict[str, Any] = {"inFlight": 0, "collided": 0, "delivered": 0, "queue": 0}
    releases, learner, queued = np.zeros(n, int), 0, set()
    rows = list(events[: last + 1].itertuples(index=False))
    for row in rows:
        cause = rows[row.cause] if row.cause >= 0 else None
        if row.kind == "send":
            to_all = (
                n if row.agent < 0 else int(((links["a"] == row.agent) | (links["b"] == row.agent)).sum())
            )
            state["inFlight"] += to_all if row.peer == -3 else 1
        if row.kind in ("deliver", "drop") and cause is not None and cause.kind == "send":
            state["inFlight"] -= 1
        state["delivered"] += row.kind == "deliver"
        state["collided"] += row.kind == "drop" and row.outcome == "collision"
        if row.kind == "wake" and row.outcome == "queued":
            queued.add(row.seq)
        if row.cause in queued and row.kind in ("send", "drop"):
            queued.discard(row.cause)
        if row.kind in ("join", "leave") and row.agent >= 0:
            present[row.agent] = row.kind == "join"
        if row.kind in ("send", "commit") and row.agent >= 0 and row.release >= 0:
            releases[row.agent] = max(releases[row.agent], row.release + 1)
        if row.kind == "commit" and row.agent < 0:
            learner = row.version
    state |= {"queue": len(queued), "present": present.tolist(), "releases": releases.tolist()}
    return state | {"learner": learner, "time": rows[-1].time}
