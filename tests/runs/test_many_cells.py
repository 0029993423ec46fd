"""What a sweep of very many cells must not cost."""

import pickle
import sys

import small_study as small

from p2psim.runs import manifest, pool
from p2psim.runs.manifest import CellEntry, Manifest, RunEntry
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario


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
