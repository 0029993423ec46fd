"""What a sweep of very many cells must not cost."""

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import small_study as small

from p2psim.runs import manifest, pool
from p2psim.runs.manifest import CellEntry, Manifest, RunEntry
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import check, simulate
from p2psim.simulation.workspace import Workspace


def described(size: int) -> Manifest:
    entries = tuple(CellEntry(f"{i:032x}", {"a": i}) for i in range(size))
    runs = {
        (entry.content, replica): RunEntry("commits", 0.5, "data")
        for entry in entries
        for replica in range(3)
    }
    return Manifest("name", "identity", 0, 3, "finished", entries, size, runs=runs)


def test_a_manifest_of_many_cells_is_written_with_work_that_grows_with_them() -> None:
    """Ten times the cells take ten times the calls; by pairs of cells it would be a hundred times."""

    def calls(size: int) -> int:
        made, count = described(size), 0

        def profile(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            manifest.dump(made)
        finally:
            sys.setprofile(None)
        return count

    assert calls(500) > 500
    assert calls(5000) < 11 * calls(500)


def test_the_cells_of_one_scenario_are_made_once() -> None:
    scenario = small.scenario()
    first = cells(scenario)
    assert cells(scenario) is first or all(a is b for a, b in zip(cells(scenario), first, strict=True))
    again = cells(scenario.model_copy())
    assert again == first
    assert again[0] is not first[0]


def test_another_scenario_has_its_own_cells() -> None:
    scenario = small.scenario()
    assert len(cells(scenario)) == 2
    fewer = scenario.model_copy(update={"sweep": {}})
    assert len(cells(fewer)) == 1
    assert len(cells(scenario)) == 2


def test_places_in_the_file_stay_with_who_read_it() -> None:
    (cell, *_) = cells(small.scenario())
    sent = pickle.loads(pickle.dumps(cell))
    assert sent == cell
    assert isinstance(sent.scenario, Scenario)
    assert cell.scenario._origin.node is not None
    assert sent.scenario._origin.node is None


def test_a_worker_is_sent_each_cell_once() -> None:
    grid = cells(small.scenario())
    sent = []

    class Pipe:
        def send(self, message: object) -> None:
            sent.append(message)

    worker = pool.Worker(None, Pipe())  # type: ignore[arg-type]
    worker.send([(0, 0), (0, 1)], grid)
    worker.send([(0, 2), (1, 0)], grid)
    worker.send([], grid)
    assert sent == [([(0, 0), (0, 1)], {0: grid[0]}), ([(0, 2), (1, 0)], {1: grid[1]})]


STAR = {
    "privacy.epsilon": [0.5, 0.5001, {"0": 1, "1": 2, "2": 40}],
    "privacy.mechanism": ["laplace", "none"],
    "privacy.sensitivity": [
        {"kind": "clip", "norm": "l1", "bound": 1.0},
        {"kind": "clip", "norm": "l1", "bound": 2.0},
    ],
    "privacy.when_spent": ["silent"],
    "learning.algorithm.rho": [0.1, 50],
    "learning.algorithm.batch": ["whole", {"kind": "poisson", "rate": 0.5}],
    "learning.algorithm.reweight": ["none", "known"],
    "network.clock": [{"rate": 2.0}, {"rate": {"0": 1, "1": 2, "2": 3}}],
    "network.channel.loss": [0, 0.4],
    "data.source.noise": [0.1, 1],
    "record.every": [5, 10],
}


@pytest.mark.parametrize("key", STAR)
def test_a_cell_says_and_gives_the_same_whatever_cells_there_were_before_it(key: str, tmp_path: Path) -> None:
    """What cells share follows from what they have in common: beside others a cell is what it is alone."""
    swept = {key: STAR[key], "privacy.allocation": ["horizon", {"kind": "cap", "releases": 3}]}
    grid = cells(small.scenario(replicas=1, sweep=swept))

    def outcomes(order: Sequence[int], alone: bool) -> dict[int, str]:
        given, workspace = {}, Workspace(tmp_path / "shared")
        for index in order:
            scenario = grid[index].scenario
            if alone:
                scenario, workspace = pickle.loads(pickle.dumps(scenario)), Workspace(tmp_path / str(index))
            said, made = check(scenario, workspace), simulate(scenario, 0, workspace)
            parts = made.series, made.ledger, made.agents, made.noise, made.warnings
            given[index] = "\n".join(map(plainly, (said.facts, said.warnings, said.privacy[:], *parts)))
        return given

    places = range(len(grid))
    known = outcomes(places, alone=True)
    assert outcomes(places, alone=False) == known
    assert outcomes(places[::-1], alone=False) == known


def plainly(value: object) -> str:
    """All numbers of something, with all their digits."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, dict):
        return repr({name: plainly(entry) for name, entry in value.items()})
    if isinstance(value, tuple | list):
        return repr(list(map(plainly, value)))
    return (
        repr({name: plainly(entry) for name, entry in vars(value).items()})
        if hasattr(value, "__dict__")
        else repr(value)
    )


@pytest.mark.parametrize("redraw", ["never", "replica"])
def test_warnings_of_an_assessed_cell_are_those_of_each_of_its_runs(redraw: str) -> None:
    """Where each replica draws its records anew, h and its warning differ between replicas."""
    changes = small.tree(replicas=3, sweep={})
    changes["data"]["redraw"] = redraw
    changes["data"]["source"] |= {"points": 8, "noise": 3.0}
    changes["learning"]["algorithm"]["rho"] = 4000.0
    scenario = Scenario.from_dict(changes)
    known = check(scenario, Workspace(None)).of_runs
    assert known
    runs = [simulate(scenario, replica, Workspace(None)).warnings for replica in range(3)]
    again = [simulate(scenario, replica, Workspace(None), known=known).warnings for replica in range(3)]
    assert again == runs
    assert (len(set(runs)) > 1) == (redraw == "replica")
