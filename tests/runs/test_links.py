"""The table of links: what it lists, that a reader finds it, and that a forged one is found."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small_study as small
from graph_cases import graph_scenario

import p2psim
from p2psim.core.errors import InputError
from p2psim.runs.verification import verify_result
from p2psim.simulation.outcome import link_table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    return p2psim.run(graph_scenario(), tmp_path_factory.mktemp("links") / "run", progress=False)


def test_a_run_lists_each_link_once(run: p2psim.Result) -> None:
    links, agents = run.links, run.agents
    assert links is not None
    assert list(links) == ["cell", "replica", "a", "b", "weight"]
    for (cell, replica), rows in links.groupby(["cell", "replica"]):
        of_run = agents[(agents["cell"] == cell) & (agents["replica"] == replica)]
        degrees = np.bincount(np.concatenate([rows["a"], rows["b"]]), minlength=len(of_run))
        assert degrees.tolist() == of_run["degree"].tolist()
        assert (rows["a"] < rows["b"]).all()
        assert not rows.duplicated(["a", "b"]).any()


def test_of_a_star_everybody_is_linked_with_the_learner(tmp_path: Path) -> None:
    links = p2psim.run(small.scenario(replicas=1), tmp_path / "run", progress=False).links
    assert links is not None
    assert links.loc[links["cell"] == 0, ["a", "b"]].to_numpy().tolist() == [[-1, 0], [-1, 1], [-1, 2]]


def test_without_events_there_are_none(tmp_path: Path) -> None:
    record = {"metrics": ["relative_fitness"]}
    result = p2psim.run(small.scenario(replicas=1, record=record), tmp_path / "run", progress=False)
    assert result.links is None
    assert not (tmp_path / "run/links.parquet").exists()


def test_links_that_come_and_go_are_those_of_each_moment() -> None:
    topology = p2psim.OnePeerExponential(agents=8, interval=1.0)
    graph = p2psim.Network.of_graph(topology, p2psim.Gossip()).links
    table = link_table(graph, 6.5)
    active = p2psim.ActiveLinks(graph)
    for time in (0.0, 0.5, 1.0, 2.5, 3.0, 6.5):
        active.advance(time)
        there = (table["begin"] <= time) & (time < table["end"])
        listed = {*zip(table["a"][there].tolist(), table["b"][there].tolist(), strict=True)}
        assert listed == {(i, int(j)) for i in range(8) for j in active.of(i) if i < j}
    assert np.isinf(table["end"]).any()  # those of the last moment
    order = np.lexsort((table["begin"], table["b"], table["a"]))
    assert (order == np.arange(order.size)).all()


@pytest.mark.parametrize("forge", ["weight", "row"])
def test_forged_links_are_found(run: p2psim.Result, forge: str, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    table = pd.read_parquet(tmp_path / "run/links.parquet")
    if forge == "weight":
        table.loc[1, "weight"] += 1.0
    (table if forge == "weight" else table[1:]).to_parquet(tmp_path / "run/links.parquet", index=False)
    small.reseal(tmp_path / "run")
    first = verify_result(p2psim.Result.load(tmp_path / "run"))[0]
    assert first.verdict == "wrong"
    assert first.fault.startswith("links: weight of row 1 is " if forge == "weight" else "links: it has ")


def test_a_folder_of_format_2_is_read_but_not_added_to(run: p2psim.Result, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    (tmp_path / "run/links.parquet").unlink()

    def as_format_2(tree: dict[str, object]) -> None:
        tree["format"] = 2
        del tree["files"]["links.parquet"]  # type: ignore[attr-defined]

    small.reseal(tmp_path / "run", as_format_2)
    old = p2psim.Result.load(tmp_path / "run")
    assert old.summary().equals(run.summary())
    assert old.links is None
    with pytest.raises(InputError, match=r"folder format 2, .*only format 3 has the hashes and links"):
        verify_result(old)
