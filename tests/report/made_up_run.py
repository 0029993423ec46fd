"""Tables of a made-up run, whose medians and slopes are known because they were put in."""

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: Replicas' factors around the median: their quartiles are 1/2, 1 and 2. They are as many as have a band.
FACTORS = (0.25, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0)


#: A query that arrives and is answered; an answer that collides; an owner that is away from 2 to 5, and from 6 on.
EVENTS = pd.DataFrame(
    [
        (0, 0.0, "send", -1, -3, -1, -1, "ok"),
        (1, 0.0, "deliver", 0, -1, 0, -1, "ok"),
        (2, 0.0, "deliver", 1, -1, 0, -1, "ok"),
        (3, 0.5, "send", 0, -1, 1, 0, "ok"),
        (4, 0.6, "send", 1, -1, 2, 0, "ok"),
        (5, 1.0, "deliver", -1, 0, 3, 0, "ok"),
        (6, 1.0, "commit", -1, 0, 5, 0, "ok"),
        (7, 1.1, "drop", -1, 1, 4, 0, "collision"),
        (8, 2.0, "leave", 1, -2, -1, -1, "ok"),
        (9, 5.0, "join", 1, -2, -1, -1, "ok"),
        (10, 5.5, "send", 0, -1, 1, 1, "ok"),
        (11, 6.0, "leave", 1, -2, -1, -1, "ok"),
    ],
    columns=["seq", "time", "kind", "agent", "peer", "cause", "release", "outcome"],
).assign(cell=0, replica=0, version=0)


@dataclass
class Run:
    path: Path
    metrics: pd.DataFrame
    ledger: pd.DataFrame
    agents: pd.DataFrame
    events: pd.DataFrame | None = None
    manifest: dict[str, Any] = field(default_factory=lambda: {"name": "made-up"})
    scenario: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)


def text_of(figure: Any, gid: str) -> str:
    """What a figure says in its footnote or its badge; empty where it has none."""
    return " ".join(" ".join(text.get_text() for text in figure.texts if text.get_gid() == gid).split())


def footnote(figure: Any) -> str:
    return text_of(figure, "footnote")


def legend(figure: Any) -> list[str]:
    return [text.get_text() for one in figure.legends for text in one.get_texts() if text.get_text()]


def lines_of(axes: Any) -> dict[str, Any]:
    """Lines of axes by their names; one without a name is only there to compare with."""
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def psi(epsilon: float, records: int, step: int) -> float:
    """A known law: 400·(1000/(n·ε))² at the end, decaying from 1 by then."""
    final = 400 * (1000 / (records * epsilon)) ** 2
    return final + np.exp(-step / 8)


def run(
    path: Path,
    sweep: dict[str, list[Any]] | None = None,
    steps: range = range(0, 301, 10),
    owners: int = 3,
    law=psi,
    factors=FACTORS,
    commits: int = 0,
    flags: tuple[str, ...] = (),
    extra: tuple[str, ...] = (),
) -> Run:
    sweep = sweep or {}
    metrics, ledger, agents, events = [], [], [], []
    rng = np.random.default_rng(0)
    for cell, values in enumerate(product(*sweep.values())):
        swept = dict(zip(sweep, values, strict=True))
        epsilon = swept.get("privacy.epsilon", 10.0)
        records = swept.get("data.partition.records", 1000)
        for replica, factor in enumerate(factors):
            for step in steps:
                base = {
                    **swept,
                    "cell": cell,
                    "replica": replica,
                    "step": step,
                    "time": step / owners + 0.01 * replica,
                }
                metrics.append({**base, "agent": None, "model": "main", "metric": "relative_fitness",
                                "value": factor * law(epsilon, records, step)})  # fmt: skip
                for name in extra:
                    for agent in range(owners):
                        metrics.append({**base, "agent": agent, "model": "main", "metric": name,
                                        "value": (0.5 + 0.1 * agent) * (1 - np.exp(-step / 60))})  # fmt: skip
            for agent in range(owners):
                agents.append({"cell": cell, "replica": replica, "index": agent, "label": f"bank {agent}",
                               "group": None, "records": records // owners})  # fmt: skip
                ledger.append({**swept, "cell": cell, "replica": replica, "agent": agent, "budget": epsilon,
                               **dict.fromkeys(flags, True), "over_budget": False})  # fmt: skip
            time = 0.0
            for seq in range(commits):
                time += rng.exponential(1 / owners)
                owner = int(rng.integers(owners))
                for kind, agent, peer in (("wake", owner, -2), ("commit", -1, owner)):
                    events.append({"cell": cell, "replica": replica, "seq": 2 * seq + (kind == "commit"),
                                   "time": time, "kind": kind, "agent": agent, "peer": peer, "outcome": "ok",
                                   "cause": -1, "release": -1, "version": 0})  # fmt: skip
    frame = pd.DataFrame(metrics)
    frame["agent"] = frame["agent"].astype("Int32")
    return Run(
        path, frame, pd.DataFrame(ledger), pd.DataFrame(agents), pd.DataFrame(events) if commits else None
    )


def with_events(path: Path) -> Run:
    """A star of two banks, whose events are those above."""
    made = run(path, owners=2, factors=(1.0,))
    made.events = EVENTS
    made.ledger = made.ledger.assign(epsilon_claimed=[4.0, 10.0], budget=10.0, releases=[2, 1])
    made.agents = made.agents.assign(degree=1)
    made.links = pd.DataFrame({"cell": 0, "replica": 0, "a": [-1, -1], "b": [0, 1]})
    return made
