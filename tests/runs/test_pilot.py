"""What a pilot foretells, and that it never takes long."""

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import small_study as small
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from threadpoolctl import threadpool_info

from p2psim.cli.main import main
from p2psim.core import files
from p2psim.core.errors import SimulationError
from p2psim.runs import batches, pilot
from p2psim.runs.batches import BatchOptions, BatchResult, Item, run_batch
from p2psim.runs.checking import check_scenario
from p2psim.runs.pilot import Pilot
from p2psim.runs.progress import time_in_words, time_range
from p2psim.runs.runner import run
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Cell, Scenario
from p2psim.simulation import simulate
from p2psim.simulation.session import KEPT_CELLS
from p2psim.simulation.workspace import Workspace


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """A pilot flies only where kernels have been compiled, which a first simulation does."""
    cell = cells(small.scenario(replicas=1))[0]
    with tempfile.TemporaryDirectory() as directory:
        simulate.simulate(cell.scenario, 0, Workspace(Path(directory)))


def flown(study: Scenario, jobs: int = 1) -> Pilot:
    checked = check_scenario(study, "small.yaml", pilot=True, jobs=jobs)
    assert checked.pilot is not None
    return checked.pilot


def simulating(found: Pilot) -> tuple[float, float]:
    """Seconds of the simulations alone, the least and the most."""
    beside = found.start_seconds + found.once_seconds + found.write_seconds
    return found.least_seconds - beside, found.most_seconds - beside


def long(replicas: object = 3) -> Scenario:
    algorithm = small.tree()["learning"]["algorithm"] | {"horizon": 50_000_000}
    learning = small.tree()["learning"] | {"algorithm": algorithm}
    record = {"metrics": ["relative_fitness"], "every": 1_000_000}
    return small.scenario(learning=learning, record=record, replicas=replicas)


def test_time_is_bounded_and_foretold_where_not_one_simulation_fits() -> None:
    flown(small.scenario())  # imports, and compiled code from the cache
    began = time.perf_counter()
    found = flown(long())
    # Some seconds, where nothing else runs; the simulations would take minutes.
    assert time.perf_counter() - began < 30
    assert found.simulations == 0
    # 2 cells of 3 replicas with 6 events for each of 5e7 commits.
    assert (found.keep_seconds, found.write_seconds, found.size) == (0, 0, None)
    least, most = simulating(found)
    assert least == pytest.approx(6 * 3e8 / found.fastest, rel=0.01)
    assert most == pytest.approx(6 * 3e8 / found.slowest, rel=0.01)
    assert found.slowest <= found.events_per_second <= found.fastest


def test_seconds_grow_as_events_and_shrink_as_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock of our own: each look at it is a hundredth of a second."""
    looks = iter(range(10**9))
    monkeypatch.setattr(time, "perf_counter", lambda: next(looks) / 100)
    monkeypatch.setattr(pilot, "available_cores", lambda: 3)
    study = small.scenario(replicas=100)
    one = flown(study)
    assert one.simulations > 1
    # Nothing varies, so nothing is said to.
    assert one.slowest == pytest.approx(one.fastest)
    assert one.least_seconds == pytest.approx(one.most_seconds)
    events = check_scenario(study, "").events
    assert simulating(one)[1] == pytest.approx(events / one.events_per_second + one.keep_seconds)
    for jobs in (2, 4):
        several = flown(study, jobs=jobs)
        # As many at a time as there are cores.
        alone = events / several.events_per_second + several.keep_seconds
        assert simulating(several)[1] == pytest.approx(min(alone, alone / min(jobs, 3) + 1.0))


def test_a_rule_for_replicas_gives_a_range() -> None:
    until = {"metric": "relative_fitness", "width": 0.1}
    found = flown(long({"until": until, "least": 10, "most": 1000}))
    least, most = simulating(found)
    assert most * found.slowest == pytest.approx(100 * least * found.fastest)


def test_a_machine_that_becomes_busy_gives_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock of our own: a look takes 5 ms, and from the half of the pilot on three times as long."""
    now = [0.0]

    def look() -> float:
        now[0] += 0.005 if now[0] < 0.5 else 0.015
        return now[0]

    study = small.scenario(replicas=100_000)
    flown(study)  # imports
    monkeypatch.setattr(time, "perf_counter", look)
    found = flown(study)
    assert 3 <= found.stretches <= pilot.STRETCHES
    # One stretch may hold both paces, but not the first and not the last.
    assert found.fastest == pytest.approx(3 * found.slowest)
    least, most = (whole - found.keep_seconds for whole in simulating(found))
    assert most == pytest.approx(3 * least)
    assert found.slowest < found.events_per_second < found.fastest


def made_up(
    monkeypatch: pytest.MonkeyPatch,
    fixed: float,
    each: float,
    setup: float,
    together: float = 0.0,
    loading: float = 0.0,
    cold: float = 0.0,
) -> None:
    """Simulations that take time on a clock of our own alone.

    So much each, an event, and once a cell for as long as it is kept; of several of a cell at once so much for all of
    them, and once. The first ten batches take longer by what is not in the processor's cache yet.
    """
    now, known, loaded, warm = [0.0], dict[int, None](), list[bool](), list[bool]()

    def set_up(events: int) -> None:
        now[0] += setup * (events not in known)
        known.pop(events, None)
        known[events] = None
        if len(known) > KEPT_CELLS:
            del known[next(iter(known))]

    def events(scenario: Scenario) -> int:
        return 6 * scenario.learning.algorithm.horizon  # type: ignore[attr-defined]

    def sample(
        scenario: Scenario, replica: int, workspace: Workspace, until: float
    ) -> tuple[list[tuple[int, float]], bool]:
        set_up(events(scenario))
        pieces, left = list[tuple[int, float]](), events(scenario)
        while left and now[0] <= until:
            chunk = min(left, 500)
            now[0] += each * chunk
            left -= chunk
            pieces.append((chunk, each * chunk))
        return pieces, not left

    def run_batch(grid: Sequence[Cell], items: Sequence[Item], *_: object) -> BatchResult:
        began = now[0]
        now[0] += together + cold * (len(warm) < 10)
        warm.append(True)
        if len(items) > 1 and not loaded:
            now[0] += loading
            loaded.append(True)
        for cell, _replica in items:
            scenario = grid[cell].scenario
            now[0] += fixed + each * events(scenario)
            set_up(events(scenario))
        return BatchResult(None, done=len(items), seconds=now[0] - began)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(simulate, "sample", sample)
    monkeypatch.setattr(batches, "run_batch", run_batch)


@pytest.mark.parametrize("replicas", [1, 200])
@pytest.mark.parametrize(
    ("fixed", "each", "setup"),
    [(0.0, 1e-5, 0.0), (0.01, 2e-6, 0.0), (0.0, 1e-5, 0.03), (0.004, 1e-6, 0.05)],
    ids=["events", "each", "once", "all"],
)
def test_what_does_not_grow_with_events_is_counted_once(
    fixed: float, each: float, setup: float, replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Per simulation, as metrics are, or per cell, as graphs are, where cells differ by a hundred in events."""
    horizons = [40, 400, 4000]
    study = small.scenario(sweep={"learning.algorithm.horizon": horizons}, replicas=replicas)
    made_up(monkeypatch, fixed, each, setup)
    found = flown(study)
    truth = replicas * sum(fixed + each * 6 * horizon for horizon in horizons) + len(horizons) * setup
    assert found.least_seconds == pytest.approx(truth, rel=0.02)
    assert found.most_seconds == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("loading", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("together", [0.0, 0.001, 0.005])
def test_what_replicas_have_together_is_counted_once_a_batch(
    together: float, loading: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of the study takes about a second, however dear a simulation is that stands alone."""
    study = small.scenario(sweep={"learning.algorithm.horizon": [40, 60]}, replicas=50_000)
    made_up(monkeypatch, 1e-4, 1e-7, 0.0, together, loading)
    found = flown(study)
    alone = 50_000 * sum(1e-4 + 1e-7 * 6 * horizon for horizon in (40, 60))
    truth = alone * (1 + together) + loading
    assert found.least_seconds == pytest.approx(truth, rel=0.12)
    assert found.once_seconds == pytest.approx(loading, rel=0.1, abs=0.05)


@pytest.mark.parametrize("record", [{"every": 1}, {"every": 10, "events": True, "noise": True}])
def test_the_folder_is_as_large_as_foretold(record: dict[str, object], tmp_path: Path) -> None:
    study = small.scenario(record={"metrics": ["relative_fitness"], **record}, replicas=150)
    found = flown(study)
    run(study, tmp_path / "run", progress=False)
    size = sum(path.stat().st_size for path in (tmp_path / "run").iterdir())
    assert found.size == pytest.approx(size, rel=0.25)


PIECES = st.lists(st.tuples(st.integers(1, 10**6), st.floats(1e-6, 10)), min_size=1)


@given(PIECES, st.integers(1, 100))
def test_spread_is_about_the_pace_of_all(pieces: list[tuple[int, float]], scale: int) -> None:
    found = pilot.spread(pieces)
    assert 1 <= len(found) <= pilot.STRETCHES
    assert found[0] <= 1 + 1e-9
    assert found[-1] >= 1 - 1e-9
    assert found == sorted(found)
    # Of more events in the same time, the same is said.
    more = pilot.spread([(scale * events, seconds) for events, seconds in pieces])
    assert more == pytest.approx(found)


@given(st.integers(1, 500), st.integers(1, 1000), st.floats(1e-6, 10))
def test_what_does_not_vary_has_no_spread(count: int, events: int, seconds: float) -> None:
    found = pilot.spread([(events, seconds)] * count)
    assert len(found) == min(count, pilot.STRETCHES)
    assert found == pytest.approx([1.0] * len(found))


def test_spread_by_hand() -> None:
    # Five stretches of 2 s: 30 events in the first, 10 in each other; 7 events a second in all.
    assert pilot.spread([(15, 1.0)] * 2 + [(5, 1.0)] * 8) == pytest.approx([5 / 7] * 4 + [15 / 7])
    assert pilot.spread([]) == []
    assert pilot.spread([(0, 0.0)]) == []


@pytest.mark.parametrize("participants", [None, 2])
def test_events_of_rounds_are_those_that_are_played(participants: int | None) -> None:
    """An answer of each owner in each round, of models that are averaged as of fitness."""
    asked = {} if participants is None else {"participants": participants}
    sgd = {"kind": "fedavg", "step": 0.1, "batch": "whole", "commits": 30}
    averaging = {"kind": "synchronous-averaging", "horizon": 30, "c1": 1.0, "theta_max": 3}
    for algorithm, metric in ((sgd, "mean_objective"), (averaging, "relative_fitness")):
        study = small.scenario(
            network={"topology": {"kind": "star", "agents": 3}, "exchange": {"kind": "round", **asked}},
            learning=small.tree()["learning"] | {"algorithm": algorithm},
            privacy={"mechanism": "none"},
            record={"metrics": [metric], "every": 10},
            sweep={},
        )
        facts = check_scenario(study, "", pilot=False).facts[0]
        with tempfile.TemporaryDirectory() as directory:
            workspace = Workspace(Path(directory))
            pieces, ended = simulate.sample(cells(study)[0].scenario, 0, workspace, time.perf_counter() + 60)
        assert ended
        assert facts.events == pytest.approx(sum(events for events, _ in pieces), abs=5)


def test_a_simulation_whose_only_chunk_takes_longer_than_the_pilot_has_ended() -> None:
    study = small.scenario()
    with tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory))
        pieces, ended = simulate.sample(cells(study)[0].scenario, 0, workspace, time.perf_counter() - 1)
        assert ended
        assert len(pieces) == 1
        pieces, ended = simulate.sample(cells(long())[0].scenario, 0, workspace, time.perf_counter() - 1)
        assert not ended
        assert len(pieces) == 1


def test_blas_has_one_thread_in_a_pilot_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, sample = [], simulate.sample

    def noted(*given: object) -> object:
        threads.append(max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))
        return sample(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(simulate, "sample", noted)
    flown(small.scenario())
    assert set(threads) == {1}


@pytest.mark.parametrize("horizons", [[400], [400, 4000]])
def test_setting_up_is_counted_of_few_cells_too(horizons: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is set up while it is sampled, and one beside it that is not."""
    study = small.scenario(sweep={"learning.algorithm.horizon": horizons}, replicas=5)
    made_up(monkeypatch, 0.0, 1e-5, 0.5)
    truth = 5 * sum(1e-5 * 6 * horizon for horizon in horizons) + len(horizons) * 0.5
    assert flown(study).least_seconds == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("replicas", [1, 3])
def test_setting_up_more_cells_than_are_kept_is_counted_once(
    replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes as long in every batch; that the first few cells take longer says nothing of the others."""
    horizons = list(range(4000, 4300))
    study = small.scenario(sweep={"learning.algorithm.horizon": horizons}, replicas=replicas)
    made_up(monkeypatch, 1e-3, 1e-8, 1e-3, cold=1e-3)
    truth = replicas * sum(2e-3 + 1e-8 * 6 * horizon for horizon in horizons)
    assert flown(study).least_seconds == pytest.approx(truth, rel=0.05)


def test_a_clairvoyant_allocation_is_flown_too() -> None:
    privacy = small.tree()["privacy"] | {"allocation": {"kind": "uniform"}}
    study = small.scenario(privacy=privacy)
    assert flown(study).simulations > 0


def test_memory_is_that_of_this_process_at_least() -> None:
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    assert flown(small.scenario()).memory >= 0.9 * resident


def test_command_tells_the_time_or_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small.yaml"
    with open(path, "w") as stream:
        YAML(typ="safe").dump(small.tree(), stream)
    assert main(["check", str(path), "--jobs", "2"]) == 0
    assert "with 2 jobs, at" in capsys.readouterr().out.splitlines()[2]
    assert main(["check", str(path), "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)[0]
    assert tree["pilot"]["simulations"] >= 1
    assert main(["check", str(path), "--no-pilot", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["pilot"] is None

    def fail(*_: object) -> None:
        raise SimulationError("the model is not finite")

    monkeypatch.setattr(simulate, "sample", fail)
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()[2]
    assert said == "time: not estimated (the pilot failed, as a run will: the model is not finite)"
    monkeypatch.setattr(files, "is_compiled", lambda: False)
    monkeypatch.setattr(pilot, "estimate_runtime", fail)
    assert main(["check", str(path)]) == 0
    assert "kernels are not compiled yet" in capsys.readouterr().out.splitlines()[2]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0123, "0.012 seconds"), (119, "119 seconds"), (150, "2.5 minutes"), (86400 * 150, "150 days")],
)
def test_lengths_of_time(seconds: float, said: str) -> None:
    assert time_in_words(seconds) == said


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(1.4, 1.7, "1.4 to 1.7 seconds"), (64, 126, "64 seconds to 2.1 minutes"), (2, 2.001, "2 seconds")],
)
def test_ranges_of_time(least: float, most: float, said: str) -> None:
    assert time_range(least, most) == said


@pytest.mark.verification
def test_forecast_is_right_within_a_factor_of_four(tmp_path: Path) -> None:
    """On the same machine at the same time; a factor of two is usual."""
    study = small.scenario(replicas=10_000)
    foretold = flown(study).most_seconds
    grid = cells(study)
    items = [(cell.index, replica) for replica in range(10_000) for cell in grid]
    taken = run_batch(grid, items, Workspace(tmp_path), BatchOptions(), prepare=True).seconds
    assert taken / 4 < foretold < taken * 4
