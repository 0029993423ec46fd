"""Metrics of a star beside its own: on each owner's records held out, by group, and of single owners.

Expected values come from the recorded models and the prepared records, by plain sums in the test.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from star_cases import scenario

import p2psim
from p2psim.core.errors import InputError
from p2psim.core.events import COMMIT, DELIVER, LEARNER, SEND
from p2psim.report import draw
from p2psim.report.page.encoding import Packer
from p2psim.report.page.recording import open_recording
from p2psim.report.page.replica import replica
from p2psim.runs.verification import verify_result
from p2psim.simulation.simulate import SESSION, simulate
from p2psim.simulation.workspace import Workspace

OF_EVENTS = ["releases", "staleness", "version_lag", "epsilon_spent"]
GROUPS = {"cut": [50], "names": ["small", "large"]}
ROUNDS = {"kind": "synchronous-averaging", "horizon": 12, "c1": 0.3, "theta_max": 2.0}


def changes_for(points: dict[int, int], loss: str) -> dict[str, Any]:
    """Changes of the small star: its loss, records held out, and metrics that have a meaning there."""
    numbers = loss == "squared"
    source = {"kind": "linear-regression"} if numbers else {"kind": "linear-classification", "test_points": 9}
    of_each = ["test_rmse", "local_loss"] if numbers else ["test_accuracy", "local_accuracy", "local_loss"]
    return {
        "network.topology.agents": len(points),
        "data.source": {**source, "dimension": 3, "points": points},
        **({"data.test_fraction": 0.3} if numbers else {}),
        "data.groups": GROUPS,
        "learning.loss": loss,
        "learning.regularizer.l2": 0.05,
        "learning.algorithm.rho": 5.0,
        "record.metrics": ["relative_fitness", "objective", "test_loss", *of_each, *OF_EVENTS],
        "record.per_agent": [*of_each, "isolated_fitness", *OF_EVENTS],
        "record.by": "group",
    }


def plain_values(name: str, loss: str, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """A metric of one model on some records, record by record."""
    total = 0.0
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        score = sum(a * b for a, b in zip(theta.tolist(), x, strict=True))
        if name.endswith("accuracy"):
            total += 0.5 if score == 0 else float((score > 0) == (label > 0))
        elif name == "test_rmse" or loss == "squared":
            total += (score - label) ** 2
        elif loss == "hinge":
            total += max(0.0, 1 - label * score)
        else:
            total += math.log1p(math.exp(-label * score))
    return math.sqrt(total / len(y)) if name == "test_rmse" else total / len(y)


@settings(max_examples=12)
@given(
    points=st.lists(st.integers(8, 90), min_size=1, max_size=5),
    loss=st.sampled_from(["squared", "hinge", "logistic"]),
    rounds=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_they_are_what_plain_sums_give(
    points: list[int], loss: str, rounds: bool, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    changes = changes_for(dict(enumerate(points)), loss) | {"seed": seed}
    if rounds:
        changes |= {"learning.algorithm": ROUNDS, "network.exchange": "round"}
        changes["learning.algorithm.rho"] = None
    cell, workspace = scenario(changes), Workspace(tmp_path_factory.mktemp("star"))
    outcome = simulate(cell, 0, workspace)
    arrays, series = SESSION.cell(cell, 0, workspace)[0].arrays, outcome.series
    X, y, ends = (np.asarray(arrays[f"test_{name}"]) for name in ("X", "y", "offsets"))
    everyone = range(len(points))
    groups = outcome.agents["group"]
    held = [slice(ends[i], ends[i + 1]) for i in everyone]
    models = {"main": outcome.models, "optimum": [arrays["optimum"]] * 2}
    seen = set()
    for one in series:
        name, _, group = one.metric.removesuffix("]").partition("[")
        if name not in ("test_accuracy", "test_rmse", "local_accuracy", "local_loss"):
            continue
        seen.add((name, bool(group), one.agent is not None, one.model))
        assert models[one.model] is not None
        for value, theta in zip(one.value, models[one.model], strict=True):
            measure = partial(plain_values, name, loss, np.asarray(theta))
            if not name.startswith("local"):
                assert value == pytest.approx(measure(X, y), rel=1e-9)
                continue
            which = [i for i in everyone if one.agent in (None, i) and groups[i] == (group or groups[i])]
            found = [measure(X[held[i]], y[held[i]]) for i in which if held[i].start < held[i].stop]
            assert value == pytest.approx(sum(found) / len(found), rel=1e-9)
    assert {(a, c) for _, a, c, _ in seen} == {(False, False), (False, True), (True, False)}
    assert {model for *_, model in seen} == {"main", "optimum"}
    _check_objective(series, arrays, outcome.models, loss)


def _check_objective(series: Any, arrays: Any, models: Any, loss: str) -> None:
    """f from all records, each counting alike."""
    (values,) = [one.value for one in series if (one.metric, one.model) == ("objective", "main")]
    X, y = np.asarray(arrays["X"]), np.asarray(arrays["y"])
    expected = [plain_values("loss", loss, theta, X, y) + 0.05 * theta @ theta for theta in models]
    assert values == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("engine", ["simpy", "array"])
def test_what_owners_did_is_counted_from_their_events(engine: str, tmp_path: Any) -> None:
    """Three owners at once, on a channel that loses: releases, ages of answers, and lags, event by event."""
    exchange = {"kind": "request", "service": 0.4, "concurrency": "all"}
    changes = changes_for({0: 40, 1: 60, 2: 100}, "squared") | {
        "network.exchange": exchange, "network.channel.loss": 0.2, "network.engine": engine,
    }  # fmt: skip
    outcome = simulate(scenario(changes), 0, Workspace(tmp_path))
    made, ages, lags = np.zeros(3, int), [[] for _ in range(3)], [[] for _ in range(3)]  # type: ignore[var-annotated]
    versions, version = {}, 0
    for event in outcome.events:
        kind, agent, peer = event["kind"], event["agent"], event["peer"]
        if kind == SEND and agent >= 0 and event["release"] >= 0:
            made[agent] = event["release"] + 1
        elif kind == DELIVER and agent == LEARNER and event["version"] >= 0:
            ages[peer].append(version - event["version"])
            versions[peer] = event["version"]
        elif kind == COMMIT:
            lags[peer].append(version - versions[peer])
            version += 1
    assert version == 60
    assert sum(map(sum, lags)) > 0
    last = {(one.metric, one.agent): one.value[-1] for one in outcome.series}
    ledger = outcome.ledger
    for i in range(3):
        assert last["releases", i] == made[i] == ledger["releases"][i]
        assert last["staleness", i] == pytest.approx(np.mean(ages[i]), rel=1e-12)
        assert last["version_lag", i] == pytest.approx(np.mean(lags[i]), rel=1e-12)
        # Each answer costs ε/T of its owner's budget.
        assert last["epsilon_spent", i] == pytest.approx(made[i] * 500 / 60, rel=1e-9)
        assert last["epsilon_spent", i] == pytest.approx(ledger["epsilon_claimed"][i], rel=1e-9)
    assert last["epsilon_spent", None] == pytest.approx(np.mean([last["epsilon_spent", i] for i in range(3)]))
    assert last["releases", None] == made.sum()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    """A run of every metric of a star of classes."""
    cell = scenario(changes_for({0: 30, 1: 60, 2: 100}, "hinge") | {"replicas": 2})
    return p2psim.run(cell, tmp_path_factory.mktemp("stars") / "run", progress=False)


def test_they_are_recomputed_and_a_change_of_each_is_found(study: p2psim.Result, tmp_path: Any) -> None:
    assert {one.verdict for one in verify_result(study)} == {"right"}
    path = study.path / "metrics.parquet"
    kept, table = path.read_bytes(), pd.read_parquet(path)
    changed = [
        table.index[(table["metric"] == name) & (table["model"] == model) & (table["agent"].notna() == of_one)][-1]
        for name, model, of_one in (
            ("local_loss", "main", True), ("local_accuracy[small]", "optimum", False), ("version_lag", "main", True),
            ("epsilon_spent", "main", True), ("objective", "main", False),
        )
    ]  # fmt: skip
    try:
        for row in changed:
            wrong = table.copy()
            wrong.loc[row, "value"] += 1e-4
            wrong.to_parquet(path, index=False)
            assert "wrong" in {one.verdict for one in verify_result(p2psim.Result.load(study.path))}
    finally:
        path.write_bytes(kept)


def test_tables_figures_and_pages_know_them(study: p2psim.Result, tmp_path: Any) -> None:
    table = study.summary()
    assert {"local_accuracy", "local_accuracy[small]", "local_loss[large]"} <= set(table["metric"])
    assert (table.loc[table["model"] == "optimum", "flags"] == "not_private").all()

    def drawn(kind: str, metric: str) -> set[str]:
        paths = draw(study, kind, metric, tmp_path, format="svg")
        return {path.stem for path in paths}

    assert "ecdf-local_accuracy" in drawn("ecdf", "local_accuracy")
    assert "agents-epsilon_spent" in drawn("agents", "epsilon_spent")
    with pytest.raises(InputError, match="all agents have the same number of neighbours"):
        drawn("degree", "local_loss")
    page = replica(open_recording(study, 0, 1), Packer(), None, None)
    assert {f"metric/{name}" for name in study.scenario.record.per_agent} <= {
        one["name"] for one in page["columns"]
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"record.metrics": ["test_rmse"]},
            "record.metrics.0: test_rmse is of labels that are numbers, and hinge",
        ),
        (
            {"learning.loss": "squared", "data.source": {"kind": "linear-regression", "points": 9}},
            "record.per_agent.0: test_accuracy is of labels that are classes, and squared takes numbers; record test_",
        ),
        ({"data.source.test_points": 0}, "needs records held out"),
        (
            {"record.metrics": ["consensus_distance"]},
            "record.metrics.0: consensus_distance is of other algorithms than async-star; known: relative_fitness, ",
        ),
        ({"record.metrics": ["lambda2"]}, "lambda2 is of other algorithms than async-star"),
        ({"record.per_agent": ["relative_fitness"]}, "relative_fitness is one number for all agents"),
        ({"record.per_agent": ["messages"]}, "messages is one number for all agents"),
        ({"record.by": "degree"}, "record.by: degree is for agents on a graph"),
        ({"data.groups": None}, "record.by: group needs groups of agents"),
    ],
)
def test_what_has_no_meaning_is_refused(changes: dict[str, Any], message: str, tmp_path: Any) -> None:
    base = changes_for({0: 40, 1: 60, 2: 100}, "hinge")
    with pytest.raises(InputError, match=message):
        simulate(scenario(base | changes), 0, Workspace(tmp_path))
