"""What a run is depends on the contents of the files that its scenario names, not on their names alone."""

from pathlib import Path

import numpy as np
import pytest
from graph_cases import graph_scenario

from p2psim.core.errors import InputError
from p2psim.core.files import sha256_of
from p2psim.scenario.cells import cells, content, identity, value_at
from p2psim.scenario.model import Scenario


def ring(path, agents, weight):
    path.write_text("".join(f"{i} {(i + 1) % agents} {weight}\n" for i in range(agents)))


def spans(path, agents, value):
    path.write_text("agent,begin,end\n" + "".join(f"{i},{value},{value + 1}\n" for i in range(agents)))


def models(path, agents, value):
    np.savetxt(path, np.full((agents, 3), value), delimiter=",")


def speeds(path, agents, value):
    path.write_text("agent,rate\n" + "".join(f"{i},{value}\n" for i in range(agents)))


@pytest.mark.parametrize(
    ("key", "kind", "write"),
    [
        ("network.topology", {"kind": "file"}, ring),
        ("network.availability", {"kind": "scripted"}, spans),
        ("network.clock.rate", {}, speeds),
        ("learning.algorithm.start", {"kind": "given"}, models),
    ],
)
def test_a_file_that_changed_makes_another_run(key, kind, write, tmp_path):
    path, agents = tmp_path / "file.txt", 6

    def read():
        ring_of_as_many = {} if key == "network.topology" else {"network.topology": {"kind": "ring"}}
        return graph_scenario(
            {**ring_of_as_many, "data.source.agents": agents, key: {**kind, "path": str(path)}}
        )

    write(path, agents, 1.0)
    before = read()
    again = read()
    assert (content(before), identity(before)) == (content(again), identity(again))
    write(path, agents, 2.0)
    after = read()
    assert content(after) != content(before)
    assert identity(after) != identity(before)
    with pytest.raises(InputError, match="is not the same file as before"):
        Scenario.from_dict(before.resolved())
    path.unlink()
    assert read().resolved()  # that it is missing is said when it is needed


@pytest.mark.parametrize(
    "part", ["network.topology", "learning.algorithm.start", "network.channel.latency.empirical"]
)
def test_a_sweep_over_files_takes_each_with_its_own_hash(part, tmp_path):
    paths = [str(tmp_path / f"{value}.txt") for value in (1, 2)]
    for value, path in enumerate(map(Path, paths), 1):
        if part == "network.topology":
            ring(path, 6, value)
        else:
            np.savetxt(path, np.full((6, 3) if "start" in part else 6, float(value)), delimiter=",")
    kind = {"network.topology": {"kind": "file"}, "learning.algorithm.start": {"kind": "given"}}.get(part, {})
    swept = graph_scenario({part: {**kind, "path": paths[0]}, "sweep": {f"{part}.path": paths}})
    grid = cells(swept)
    hashes = [value_at(cell.scenario, (*part.split("."), "sha256")) for cell in grid]
    assert hashes == [sha256_of(Path(path)) for path in paths]
    assert grid[0].content != grid[1].content
    again = cells(Scenario.from_dict(swept.resolved()))
    assert [cell.content for cell in again] == [cell.content for cell in grid]
