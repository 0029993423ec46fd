"""Whole runs of algorithms that train one model, beside a few lines of NumPy for each.

All have weight decay, momentum and a step that falls. What is expected follows from the papers' formulas, the events of
the run and its records; nothing of p2psim computes it.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2psim.core.events import COMMIT, DELIVER, SEND
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

AGENTS, L2, DECAY, BETA = 5, 0.05, 0.3, 0.6
STAR: dict[str, Any] = {"kind": "star", "agents": AGENTS}
LATE = {"latency": {"uniform": [0.0, 2.0]}}
RING: dict[str, Any] = {"kind": "ring", "agents": AGENTS}


def eta(t: int) -> float:
    """The step η_t."""
    return 0.1 / (1 + 0.2 * t)


class Run:
    """A run: its events, all recorded models, and gradients of its records written down anew."""

    def __init__(
        self,
        folder: Path,
        topology: dict[str, Any],
        exchange: Any,
        algorithm: dict[str, Any],
        channel: Any = None,
    ):
        step = {"kind": "inverse", "first": 0.1, "decay": 0.2}
        keys = {"step": step, "momentum": BETA, "weight_decay": DECAY} | algorithm
        tree = {
            "name": "by-hand",
            "seed": 4,
            "network": {"topology": topology, "exchange": exchange, "channel": channel or {}},
            "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": {"uniform": [8, 20]}}},
            "learning": {"algorithm": keys, "loss": "squared", "regularizer": {"l2": L2}},
            "privacy": {"mechanism": "none"},
            "record": {"metrics": ["objective"], "every": 1, "events": True, "models": True},
        }
        scenario, workspace = Scenario.from_dict(tree), Workspace(folder)
        outcome = simulate(scenario, 0, workspace)
        assert outcome.events is not None
        assert outcome.models is not None
        arrays = workspace.case(scenario, 0).arrays
        self.events = outcome.events
        self.models = outcome.models.reshape(len(outcome.models), -1, 3)
        self.records = [
            (np.array(arrays["X"][a:b]), np.array(arrays["y"][a:b])) for a, b in pairwise(arrays["offsets"])
        ]

    def gradient(self, i: int, theta: np.ndarray) -> np.ndarray:
        """Of the mean of (xθ − y)² over agent i's records, with l2·‖θ‖² and ½λ·‖θ‖²."""
        X, y = self.records[i]
        return np.asarray(2 * X.T @ (X @ theta - y) / len(y) + (2 * L2 + DECAY) * theta)

    def trained(self, i: int, theta: np.ndarray, step: float, steps: int) -> np.ndarray:
        """Local steps, whose momentum begins anew."""
        velocity = np.zeros(3)
        for _ in range(steps):
            velocity = BETA * velocity + self.gradient(i, theta)
            theta = theta - step * velocity
        return theta

    def holds(self, expected: list[np.ndarray]) -> None:
        """Models after every commit are these."""
        assert len(expected) > 10
        np.testing.assert_allclose(self.models.squeeze(), np.array(expected), rtol=1e-11, atol=1e-13)

    def answers(self) -> list[tuple[int, int]]:
        """The owner of each commit, and the commits that had been made when the learner sent it its model."""
        sent, causes = dict[int, int](), dict[int, int]()
        found = list[tuple[int, int]]()
        for event in self.events:
            seq, cause = int(event["seq"]), int(event["cause"])
            causes[seq] = cause
            if event["kind"] == SEND and event["agent"] == -1:
                sent[seq] = len(found)
            elif event["kind"] == COMMIT:
                while cause not in sent:
                    cause = causes[cause]
                found.append((int(event["peer"]), sent[cause]))
        return found


@pytest.mark.parametrize("order", ["gossip-then-gradient", "gradient-then-gossip", "together"])
def test_decentralised_sgd(order: str, tmp_path: Path) -> None:
    """On a ring of Metropolis weights: thirds."""
    keys = {"kind": "decentralised-sgd", "order": order, "commits": 12 * AGENTS}
    run = Run(tmp_path, RING, "synchronous", keys)
    W = (np.eye(AGENTS) + np.roll(np.eye(AGENTS), 1, axis=1) + np.roll(np.eye(AGENTS), -1, axis=1)) / 3
    models, velocity, expected = np.zeros((AGENTS, 3)), np.zeros((AGENTS, 3)), [np.zeros((AGENTS, 3))]
    for t in range(12):
        at = W @ models if order == "gossip-then-gradient" else models
        velocity = BETA * velocity + [run.gradient(i, theta) for i, theta in enumerate(at)]
        half = models - eta(t) * velocity
        models = W @ half if order == "gradient-then-gossip" else W @ models - eta(t) * velocity
        expected.append(models)
    run.models = run.models[::AGENTS]
    run.holds(expected)


def test_fedavg(tmp_path: Path) -> None:
    """Three local steps, answers weighed by records, momentum of the learner."""
    keys = {"local_steps": 3, "server_step": 0.8, "server_momentum": 0.4, "commits": 15}
    run = Run(tmp_path, STAR, {"kind": "round", "participants": 3}, {"kind": "fedavg", **keys})
    theta, velocity, expected, answered = np.zeros(3), np.zeros(3), [np.zeros(3)], list[int]()
    for event in run.events:
        if event["kind"] == DELIVER and event["agent"] == -1:
            answered.append(int(event["peer"]))
        elif event["kind"] == COMMIT:
            t = len(expected) - 1
            counts = np.array([len(run.records[i][1]) for i in answered])
            changes = np.array([run.trained(i, theta, eta(t), 3) - theta for i in answered])
            velocity = 0.4 * velocity + counts @ changes / counts.sum()
            theta = theta + 0.8 * velocity
            expected.append(theta)
            assert len(answered) == 3
            answered = []
    run.holds(expected)


@pytest.mark.parametrize("exchange", ["request", {"kind": "poll", "interval": 0.1}], ids=["request", "poll"])
def test_fedasync(exchange: Any, tmp_path: Path) -> None:
    """α/(1 + age), age in commits since the answer's model."""
    keys = {"alpha": 0.7, "staleness": {"kind": "inverse", "rate": 1.0}, "local_steps": 2, "commits": 40}
    run = Run(tmp_path, STAR, exchange, {"kind": "fedasync", **keys}, LATE)
    expected, answers = [np.zeros(3)], run.answers()
    assert exchange == "request" or max(k - version for k, (_, version) in enumerate(answers)) > 0
    for k, (owner, version) in enumerate(answers):
        share = 0.7 / (1 + k - version)
        answer = run.trained(owner, expected[version], eta(version), 2)
        expected.append((1 - share) * expected[-1] + share * answer)
    run.holds(expected)


def test_fedbuff(tmp_path: Path) -> None:
    """A step of the learner after every three answers; t counts these."""
    keys = {"buffer": 3, "server_step": 0.9, "server_momentum": 0.4, "local_steps": 2, "commits": 40}
    run = Run(tmp_path, STAR, "request", {"kind": "fedbuff", "staleness": "none", **keys}, LATE)
    expected, changes, velocity = [np.zeros(3)], list[np.ndarray](), np.zeros(3)
    for owner, version in run.answers():
        start = expected[version]
        changes.append(run.trained(owner, start, eta(version // 3), 2) - start)
        theta = expected[-1]
        if len(changes) == 3:
            velocity = 0.4 * velocity + np.mean(changes, axis=0)
            theta, changes = theta + 0.9 * velocity, []
        expected.append(theta)
    run.holds(expected)


@pytest.mark.parametrize("merge", ["walk", "merge-update", "update-merge"])
def test_gossip_learning(merge: str, tmp_path: Path) -> None:
    """Merges weigh by age, steps made; η is that of the age."""
    exchange = {"kind": "gossip", "mode": "push"}
    keys = {"merge": merge, "merge_weights": "age", "local_steps": 2, "commits": 40}
    run = Run(tmp_path, RING, exchange, {"kind": "gossip-learning", **keys})
    Aged = tuple[np.ndarray, int]

    def update(i: int, model: Aged) -> Aged:
        return run.trained(i, model[0], eta(model[1]), 2), model[1] + 2

    def merged(one: Aged, other: Aged) -> Aged:
        share = one[1] / (one[1] + other[1]) if one[1] + other[1] else 0.5
        return share * one[0] + (1 - share) * other[0], max(one[1], other[1])

    models: list[Aged] = [(np.zeros(3), 0)] * AGENTS
    before, sent, heard = list(models), dict[int, Aged](), dict[int, Aged]()
    expected = [np.zeros((AGENTS, 3))]
    for event in run.events:
        kind, i, seq, cause = (int(event[name]) for name in ("kind", "agent", "seq", "cause"))
        if kind == SEND:
            sent[seq] = models[i]
        elif kind == DELIVER:
            heard[seq] = sent[cause]
        elif kind == COMMIT:
            model = heard[cause]
            if merge == "walk":
                models[i] = update(i, model)
            elif merge == "merge-update":
                models[i] = update(i, merged(model, before[i]))
            else:
                models[i] = merged(update(i, model), update(i, before[i]))
            before[i] = model
            expected.append(np.array([theta for theta, _ in models]))
    run.holds(expected)
