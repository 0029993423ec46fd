"""What a run folder holds, and that it does not depend on how the work was done."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_study as small

import p2psim
from p2psim.core.errors import InputError, SimulationError
from p2psim.core.events import EVENT, FORMAT_VERSION
from p2psim.network.simulation import CHUNK
from p2psim.runs import batches, compaction, manifest, pool, runner, store
from p2psim.scenario.yaml import from_ranges, to_ranges
from p2psim.simulation.workspace import write_archive


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    """The small study, run at one go in this process."""
    return p2psim.run(small.scenario(), tmp_path_factory.mktemp("reference") / "run", progress=False)


def test_tables_have_the_published_columns(reference: p2psim.Result) -> None:
    metrics = pq.read_schema(reference.path / "metrics.parquet")
    assert metrics.names == [
        "privacy.epsilon", "cell", "replica", "step", "time", "agent", "model", "metric", "value",
    ]  # fmt: skip
    assert str(metrics.field("agent").type) == "int32"
    assert str(metrics.field("privacy.epsilon").type) in ("double", "int64")
    ledger = pq.read_schema(reference.path / "ledger.parquet")
    assert ledger.names[:9] == [
        "privacy.epsilon", "cell", "replica", "agent", "releases", "lost",
        "deliveries_lost", "budget", "epsilon_claimed",
    ]  # fmt: skip
    assert ledger.names[9:11] == ["epsilon_basic", "delta_basic"]
    assert ledger.names[11:] == [
        "violation_step", "violation_size", "bound_violated", "over_budget", "not_private",
        "public_graph_assumed", "data_dependent_step", "scaled_records", "clairvoyant",
    ]  # fmt: skip
    agents = pq.read_schema(reference.path / "agents.parquet")
    assert agents.names[:7] == ["cell", "replica", "index", "label", "group", "records", "degree"]
    assert agents.names[-1] == "budget"
    events = pq.read_schema(reference.path / "events.parquet")
    assert events.names == [
        "cell", "replica", "seq", "time", "kind", "agent", "peer", "version", "cause", "release", "outcome",
    ]  # fmt: skip
    assert events.metadata[b"p2psim.events"] == str(FORMAT_VERSION).encode()
    assert not (reference.path / "parts").exists()


def test_rows_are_sorted_and_complete(reference: p2psim.Result) -> None:
    runs = reference.metrics[["cell", "replica"]].drop_duplicates()
    assert [tuple(row) for row in runs.to_numpy()] == [(c, r) for c in range(2) for r in range(3)]
    assert set(reference.metrics["step"]) == {0, 10, 20, 30, 40}
    assert reference.metrics["agent"].isna().all()
    assert reference.events is not None
    assert set(reference.events["kind"]) <= {"wake", "send", "deliver", "drop", "commit", "join", "leave"}


def test_archives_agree_with_the_tables(reference: p2psim.Result) -> None:
    events = reference.events
    assert events is not None
    for cell, replica in [(0, 0), (1, 2)]:
        rows = events[(events["cell"] == cell) & (events["replica"] == replica)]
        releases = len(rows[(rows["release"] >= 0) & (rows["kind"] == "send")])
        assert reference.noise[cell, replica].shape == (releases, 3)
    arrays = reference.data(1, 2)
    assert arrays["X"].shape == (60, 3)
    assert reference.models.keys() == set()
    with pytest.raises(KeyError):
        reference.noise[7, 0]


def test_events_are_stored_as_the_engine_made_them(reference: p2psim.Result, tmp_path: Path) -> None:
    from p2psim.runs.verification import by_run, stream_of
    from p2psim.scenario.cells import cells
    from p2psim.simulation.simulate import simulate
    from p2psim.simulation.workspace import Workspace

    outcome = simulate(cells(small.scenario())[1].scenario, 2, Workspace(tmp_path))
    stored = stream_of(by_run(reference.events)[1, 2])
    assert stored.dtype == EVENT
    assert outcome.events is not None
    for name in EVENT.names or ():
        np.testing.assert_array_equal(stored[name], outcome.events[name])


def test_streams_of_several_chunks_are_stored_whole_and_small(tmp_path: Path) -> None:
    """Chunks of events become row groups that begin elsewhere, and columns that count take next to no room."""
    from p2psim.runs.verification import by_run, stream_of
    from p2psim.simulation.simulate import simulate
    from p2psim.simulation.workspace import Workspace

    algorithm = small.tree()["learning"]["algorithm"] | {"horizon": 12_000}
    study = small.scenario(
        learning=small.tree()["learning"] | {"algorithm": algorithm},
        record={"metrics": [], "every": 12_000, "events": True},
        replicas=2,
        sweep={},
    )
    result = p2psim.run(study, tmp_path / "run", progress=False)
    assert result.events is not None
    for replica, rows in by_run(result.events).items():
        expected = simulate(study, replica[1], Workspace(tmp_path)).events
        assert expected is not None
        assert len(expected) > 2 * CHUNK
        assert stream_of(rows).tobytes() == expected.tobytes()
    sizes = pq.ParquetFile(tmp_path / "run" / "events.parquet").metadata.row_group(0)
    bytes_of = {one["path_in_schema"]: one["total_compressed_size"] for one in sizes.to_dict()["columns"]}
    assert bytes_of["seq"] < len(result.events) / 100


def test_manifest_says_how_everything_ended(reference: p2psim.Result) -> None:
    tree = json.loads((reference.path / "manifest.json").read_text())
    assert tree["state"] == "finished"
    assert tree["identity"] == small.scenario().identity()
    assert [cell["finished"] for cell in tree["cells"]] == ["0-2", "0-2"]
    assert [cell["ended"] for cell in tree["cells"]] == [{"commits": "0-2"}] * 2
    assert [cell["swept"] for cell in tree["cells"]] == [{"privacy.epsilon": 1}, {"privacy.epsilon": 100}]
    assert set(tree["files"]) == {*small.RESULTS, "scenario.yaml"}
    assert tree["made_by"]["libraries"]["numpy"] == np.__version__


def test_resolved_scenario_gives_the_same_results(reference: p2psim.Result, tmp_path: Path) -> None:
    again = p2psim.Scenario.load(reference.path / "scenario.yaml")
    assert again.identity() == small.scenario().identity()
    p2psim.run(again, tmp_path / "again", progress=False)
    assert small.digests(tmp_path / "again") == small.digests(reference.path)


@pytest.mark.parametrize("jobs", [2, 4, None])
def test_number_of_workers_changes_no_byte(
    reference: p2psim.Result, tmp_path: Path, jobs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.001)
    before = dict(os.environ)
    p2psim.run(small.scenario(), tmp_path / "run", jobs=jobs, progress=False)
    assert small.digests(tmp_path / "run") == small.digests(reference.path)
    assert dict(os.environ) == before


def test_redrawn_data_comes_back_from_the_workers(tmp_path: Path) -> None:
    changed = small.tree()["data"] | {"redraw": "replica"}
    study = small.scenario(data=changed, replicas=2)
    one = p2psim.run(study, tmp_path / "one", progress=False)
    p2psim.run(study, tmp_path / "two", jobs=2, progress=False)
    assert small.digests(tmp_path / "one") == small.digests(tmp_path / "two")
    assert not np.array_equal(one.data(0, 0)["X"], one.data(0, 1)["X"])
    np.testing.assert_array_equal(one.data(0, 1)["X"], one.data(1, 1)["X"])


def test_small_row_groups_do_not_change_the_rows(
    reference: p2psim.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cutting rows into groups, in the middle of simulations, and reading them back across groups."""
    from p2psim.runs import tables

    monkeypatch.setattr(tables, "ROW_GROUP", 7)
    p2psim.run(small.scenario(replicas=2), tmp_path / "run", progress=False)
    p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    assert pq.ParquetFile(tmp_path / "run/metrics.parquet").num_row_groups == -(-2 * 3 * 5 // 7)
    result = p2psim.Result.load(tmp_path / "run")
    for name in ("metrics", "ledger", "agents", "events"):
        pd.testing.assert_frame_equal(getattr(result, name), getattr(reference, name))


def test_text_columns_have_the_words_that_occur(tmp_path: Path) -> None:
    """In order and each once, whether rows come from batches, which know more kinds of events, or from tables."""
    folder = tmp_path / "run"
    for replicas in (1, 3):
        p2psim.run(small.scenario(replicas=replicas), folder, progress=False)
        for path in folder.glob("*.parquet"):
            table = pq.read_table(path)
            for field in (field for field in table.schema if pa.types.is_dictionary(field.type)):
                column = table[field.name]
                occur = sorted(set(column.cast(pa.string()).to_pylist()) - {None})
                assert field.type == pa.dictionary(pa.int32(), pa.string())
                assert all(chunk.dictionary.to_pylist() == occur for chunk in column.chunks)


def test_names_of_many_agents_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group has a dictionary of its own names, where that of all would be longer; all are read with one, in order."""
    from p2psim.runs import tables

    topology = {"kind": "star", "agents": 20}
    changed = {"network": small.tree()["network"] | {"topology": topology}, "sweep": {"privacy.epsilon": [1]}}
    whole = p2psim.run(small.scenario(replicas=2, **changed), tmp_path / "whole", progress=False)
    monkeypatch.setattr(tables, "ROW_GROUP", 7)
    for replicas in (1, 2):
        p2psim.run(small.scenario(replicas=replicas, **changed), tmp_path / "run", progress=False)
    pd.testing.assert_frame_equal(p2psim.Result.load(tmp_path / "run").agents, whole.agents)
    assert whole.agents["label"].cat.categories.tolist() == sorted(map(str, range(20)))
    with pq.ParquetFile(tmp_path / "run/agents.parquet") as file:
        for group in range(file.num_row_groups):
            (names,) = file.read_row_group(group, ["label"]).column("label").chunks
            assert names.dictionary.to_pylist() == sorted(set(names.to_pylist()))


def test_running_again_does_nothing(reference: p2psim.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    before = small.snapshot(reference.path)

    def forbidden(*args: object) -> None:
        raise AssertionError("a finished study was simulated again")

    monkeypatch.setattr(runner.Study, "execute", forbidden)
    p2psim.run(small.scenario(), reference.path, progress=False)
    assert small.snapshot(reference.path) == before


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record which (cell, replica) are simulated."""
    done: list[tuple[int, int]] = []
    original = pool.run_batch

    def counting(cells, items, *rest):  # type: ignore[no-untyped-def]
        done.extend(items)
        return original(cells, items, *rest)

    monkeypatch.setattr(pool, "run_batch", counting)
    return done


def test_more_replicas_are_added(
    reference: p2psim.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p2psim.run(small.scenario(replicas=1), tmp_path / "run", progress=False)
    done = counted(monkeypatch)
    p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    assert sorted(done) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert small.digests(tmp_path / "run") == small.digests(reference.path)


def test_more_sweep_values_are_added(
    reference: p2psim.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells are known by content: the new one takes number 0, and the old ones move."""
    p2psim.run(small.scenario(sweep={"privacy.epsilon": [100]}), tmp_path / "run", progress=False)
    done = counted(monkeypatch)
    p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    assert sorted(done) == [(0, 0), (0, 1), (0, 2)]
    assert small.digests(tmp_path / "run") == small.digests(reference.path)


def test_values_that_leave_the_sweep_are_kept_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    old = p2psim.run(small.scenario(), folder, progress=False).metrics
    new = p2psim.run(small.scenario(sweep={"privacy.epsilon": [100, 7]}), folder, progress=False)
    assert [cell.swept["privacy.epsilon"] for cell in new.described.cells] == [100, 7, 1]
    assert new.described.cells[2].scenario
    for epsilon, before, now in [(1, 0, 2), (100, 1, 0)]:
        kept = new.metrics[new.metrics["cell"] == now]["value"].to_numpy()
        np.testing.assert_array_equal(kept, old[old["cell"] == before]["value"].to_numpy())
        assert set(new.metrics[new.metrics["cell"] == now]["privacy.epsilon"]) == {epsilon}
    p2psim.run(small.scenario(), folder, progress=False)
    assert [c.swept["privacy.epsilon"] for c in manifest.read(folder).cells] == [1, 100, 7]


def test_failure_of_one_replica_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from p2psim.simulation import simulate

    original = simulate.simulate

    def failing(scenario, replica, *rest):  # type: ignore[no-untyped-def]
        if replica == 1 and scenario.privacy.epsilon == 100:
            raise ZeroDivisionError("made up")
        return original(scenario, replica, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(simulate, "simulate", failing)
        patch.setattr(simulate, "simulated_at_once", lambda *given: 1)
        with pytest.raises(SimulationError) as raised:
            p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    message = str(raised.value)
    assert "cell 1 (privacy.epsilon = 100" in message
    assert "replica 1: ZeroDivisionError: made up" in message
    assert f"--out {tmp_path / 'run'} --cell 1 --replica 1" in message
    described = manifest.read(tmp_path / "run")
    assert described.state == "failed"
    assert len(described.runs) == 5
    assert "made up" in next(iter(described.failed.values()))
    # The command in the message, once the cause is gone, completes the folder.
    p2psim.run(small.scenario(), tmp_path / "run", only=(1, 1), progress=False)
    assert manifest.read(tmp_path / "run").state == "finished"
    p2psim.run(small.scenario(), tmp_path / "whole", progress=False)
    assert small.digests(tmp_path / "run") == small.digests(tmp_path / "whole")


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


@pytest.mark.parametrize("what", ["rename", "replace", "rmtree"])
def test_a_commit_cut_off_anywhere_is_completed(
    reference: p2psim.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    import shutil

    module = shutil if what == "rmtree" else os
    original = getattr(module, what)
    cut = 0
    while True:
        folder = tmp_path / f"{what}-{cut}"
        left = [cut]

        def cutting(*args, _left=left, **kwargs):  # type: ignore[no-untyped-def]
            if _left[0] == 0:
                raise Killed
            _left[0] -= 1
            return original(*args, **kwargs)

        finish = compaction.finish

        def finishing(*args, _cutting=cutting, _finish=finish):  # type: ignore[no-untyped-def]
            with monkeypatch.context() as inner:
                inner.setattr(module, what, _cutting)
                return _finish(*args)

        with monkeypatch.context() as patch:
            patch.setattr(compaction, "finish", finishing)
            try:
                p2psim.run(small.scenario(), folder, progress=False)
            except Killed:
                killed = True
            else:
                killed = False
        p2psim.run(small.scenario(), folder, progress=False)
        assert small.digests(folder) == small.digests(reference.path)
        assert not (folder / "parts").exists()
        if not killed:
            break
        cut += 1
    assert cut >= 1


def test_archive_has_the_bytes_of_its_content_alone(tmp_path: Path) -> None:
    arrays = [("b", np.arange(3.0)), ("a/x", np.array(["é", "z"]))]
    for name in ("one", "two"):
        with open(tmp_path / name, "wb") as stream:
            write_archive(stream, arrays)
        os.utime(tmp_path / name, (0, 0))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with np.load(tmp_path / "one", allow_pickle=False) as loaded:
        assert loaded.files == ["b", "a/x"]
        np.testing.assert_array_equal(loaded["a/x"], arrays[1][1])


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8"), ([9, 8], "8-9")]
)
def test_ranges_of_replicas(numbers: list[int], text: str) -> None:
    assert to_ranges(numbers) == text
    assert from_ranges(text) == sorted(numbers)


def test_summary_is_of_the_last_step(reference: p2psim.Result) -> None:
    last = reference.metrics[reference.metrics["step"] == 40]
    expected = last[last["cell"] == 1]["value"].median()
    row = reference.summary().set_index("cell").loc[1]
    assert row["median"] == expected
    assert row["replicas"] == 3
    assert row["privacy.epsilon"] == 100
    assert row["flags"] == "data_dependent_step"
    ledger = reference.ledger
    assert row["epsilon spent"] == ledger[ledger["cell"] == 1]["epsilon_basic"].max()
    assert row["budget"] == 100


def test_summary_has_the_largest_budget_of_any_agent(tmp_path: Path) -> None:
    study = small.tree(sweep={}, replicas=1)
    study["privacy"]["epsilon"] = {"0": 1, "1": 20, "2": 3}
    result = p2psim.run(p2psim.Scenario.from_dict(study), tmp_path / "run", progress=False)
    assert result.summary()["budget"].tolist() == [20]
    assert result.summary()["epsilon spent"].tolist() == [result.ledger["epsilon_basic"].max()]


def test_summary_averages_the_metrics_of_single_agents(tmp_path: Path) -> None:
    record = {"metrics": ["isolated_fitness", "relative_fitness"], "every": 10}
    study = small.tree(record=record, data=small.tree()["data"] | {"redraw": "replica"})
    result = p2psim.run(p2psim.Scenario.from_dict(study), tmp_path / "run", progress=False)
    summary = result.summary()
    assert summary["metric"].tolist() == ["isolated_fitness (mean over agents)", "relative_fitness"] * 2
    assert summary["replicas"].tolist() == [3] * 4
    own = result.metrics[(result.metrics["metric"] == "isolated_fitness") & (result.metrics["cell"] == 1)]
    means = [own[(own["replica"] == r) & (own["step"] == 40)]["value"].mean() for r in range(3)]
    assert summary["median"][2] == pytest.approx(sorted(means)[1], rel=1e-12)
    assert summary["q25"][2] == pytest.approx((sorted(means)[0] + sorted(means)[1]) / 2, rel=1e-12)


def test_printed_form_and_scaled_records_stand_in_the_summary(tmp_path: Path) -> None:
    study = small.tree(sweep={})
    study["learning"]["algorithm"] |= {"form": "printed", "rho": 0.1}
    study["privacy"]["scale_records"] = 10
    result = p2psim.run(p2psim.Scenario.from_dict(study), tmp_path / "run", progress=False)
    assert result.summary()["flags"].tolist() == ["over_budget, scaled_records, form: printed"]


def test_unknown_executor_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known: local, dask"):
        p2psim.run(small.scenario(), tmp_path / "run", executor="cloud")
    assert not (tmp_path / "run").exists()


def test_content_refers_to_no_other_folder(reference: p2psim.Result) -> None:
    assert store.read_content(reference.path).manifest == manifest.read(reference.path)


def test_a_finished_folder_takes_figures_that_are_asked_for_later(tmp_path: Path) -> None:
    """Nothing else changes: it is the text of a run that had them from the start."""
    late, early = tmp_path / "late", tmp_path / "early"
    figure = {"kind": "fitness", "title": "later"}
    p2psim.run(small.scenario(), late, progress=False)
    before = small.digests(late)
    result = p2psim.run(small.scenario(figure=figure), late, progress=False)
    p2psim.run(small.scenario(figure=figure), early, progress=False)
    assert [one.title for one in result.scenario.figure] == ["later"]
    assert (late / "scenario.yaml").read_bytes() == (early / "scenario.yaml").read_bytes()
    assert small.digests(late) == before
