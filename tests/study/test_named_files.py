"""What a run is depends on the contents of the files that its scenario names, not on their names alone."""

import numpy as np
import pytest
from graph_cases import graph_scenario

from p2psim.errors import InputError
from p2psim.study.cells import content, identity
from p2psim.study.scenario import Scenario


def ring(path, agents, weight):
    path.write_text("".join(f"{i} {(i + 1) % agents} {weight}\n" for i in range(agents)))


@pytest.mark.parametrize("part", ["topology", "start"])
def test_a_file_that_changed_makes_another_run(part, tmp_path):
    path, agents = tmp_path / "file.txt", 6

    def write(value):
        if part == "topology":
            ring(path, agents, value)
        else:
            np.savetxt(path, np.full((agents, 3), value), delimiter=",")

    key = "network.topology" if part == "topology" else "learning.algorithm.start"
    kind = "file" if part == "topology" else "given"

    def read():
        return graph_scenario({key: {"kind": kind, "path": str(path)}})

    write(1.0)
    before = read()
    again = read()
    assert (content(before), identity(before)) == (content(again), identity(again))
    write(2.0)
    after = read()
    assert content(after) != content(before)
    assert identity(after) != identity(before)
    with pytest.raises(InputError, match="is another file than before"):
        Scenario.from_dict(before.resolved())
    path.unlink()
    assert read().resolved()  # that it is missing is said when it is needed
