"""Killed anywhere and resumed, grown, or swept in another order: every file has the bytes of one undisturbed run."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import small_study as small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs import few

import p2psim
from p2psim.runs import batches

#: Operations on files that a program can be killed before.
OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
KILLED = 9
DATA = {**small.tree()["data"], "public": {"last": 10}}
#: What the preparation finds is the same in all cells, or differs between them, or is not kept.
STUDIES: dict[str, dict[str, Any]] = {
    "fitted for all": {"data": {**DATA, "scale": {"y": {"bound": 1.0}}}},
    "fitted by cell": {"data": DATA, "sweep": {"data.scale.y.bound": [1.0, 2.0]}},
    "redrawn": {"data": {**DATA, "redraw": "replica"}, "record": {"metrics": ["relative_fitness"]}},
}


def run(folder: Path, **changes: Any) -> None:
    p2psim.run(small.scenario(**changes), folder, progress=False)


def killed_before(operation: int, folder: Path, changes: dict[str, Any]) -> bool:
    """Run in a process that ends before its n-th operation on a file of the folder; whether it came so far."""

    def task() -> None:
        left = operation

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in OPERATIONS and str(arguments[0]).startswith(str(folder)):
                left -= 1
                if left < 0:
                    os._exit(KILLED)

        sys.addaudithook(hook)
        run(folder, **changes)

    code = small.forked(task)
    assert code in (0, KILLED)
    return code == KILLED


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    found = {}
    for name, changes in STUDIES.items():
        folder = tmp_path_factory.mktemp("undisturbed") / "run"
        run(folder, **{"replicas": 2, **changes})
        found[name] = small.everything(folder)
    return found


@pytest.mark.parametrize("name", few(STUDIES, 1))
def test_killed_anywhere_and_resumed(
    name: str,
    undisturbed: dict[str, dict[str, object]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.0)
    changes = {"replicas": 2, **STUDIES[name]}

    @settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.integers(0, 150), min_size=1, max_size=2))
    def check(moments: list[int]) -> None:
        folder = tmp_path_factory.mktemp("killed") / "run"
        for moment in moments:
            killed_before(moment, folder, changes)
        run(folder, **changes)
        assert small.everything(folder) == undisturbed[name]

    check()


def test_killed_after_the_last_batch(
    undisturbed: dict[str, dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last moments one by one: there nothing is left to be simulated."""
    changes = {"replicas": 2, **STUDIES["fitted for all"]}
    total = next(n for n in range(20, 1000, 20) if not killed_before(n, tmp_path / f"all-{n}", changes))
    for moment in range(total - 60, total, 11):
        folder = tmp_path / f"{moment}"
        killed_before(moment, folder, changes)
        run(folder, **changes)
        assert small.everything(folder) == undisturbed["fitted for all"]


VALUES = [1.0, 2.0, 5.0]
STEPS = st.lists(
    st.tuples(st.lists(st.sampled_from(VALUES), min_size=1, unique=True), st.integers(1, 2)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(key=st.sampled_from(["privacy.epsilon", "data.scale.y.bound"]), steps=STEPS)
def test_grown_in_any_order(
    key: str, steps: list[tuple[list[float], int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any subsets and orders of the sweep, with any number of replicas, before the whole."""
    whole, grown = tmp_path_factory.mktemp("whole") / "run", tmp_path_factory.mktemp("grown") / "run"
    run(whole, data=DATA, replicas=2, sweep={key: VALUES})
    for values, replicas in [*steps, (VALUES, 2)]:
        run(grown, data=DATA, replicas=replicas, sweep={key: values})
    assert small.everything(grown) == small.everything(whole)
