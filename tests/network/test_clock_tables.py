"""Rates of clocks from a table, as traces of devices have them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2psim
from p2psim.core.errors import InputError, MeaningError
from p2psim.network.members import Members
from p2psim.network.section import Clock, RateTable

LABELS = ("a0", "a1", "a2")


def clock(path: Path, text: str) -> Clock:
    path.write_text(text, encoding="utf-8")
    return Clock.model_validate({"rate": {"path": str(path)}})


def test_each_agent_has_the_rate_of_its_line(tmp_path: Path) -> None:
    of_file = clock(tmp_path / "speeds.csv", "rate,agent,model\r\n2.5,a2,x\r\n1e-3,a0,\r\n\r\n4,1,y\r\n")
    assert of_file.rates(Members(LABELS)).tolist() == [1e-3, 4.0, 2.5]
    # Groups are for mappings.
    assert of_file.rates(Members(LABELS, ("g", "g", "h"))).tolist() == [1e-3, 4.0, 2.5]


def test_a_number_and_a_mapping_are_as_before() -> None:
    assert Clock(rate=2.0).rates(Members(LABELS)).tolist() == [2.0] * 3
    of_groups = Clock(rate={"g": 3.0, "a2": 1.0})
    assert of_groups.rates(Members(LABELS, ("g", "g", "h"))).tolist() == [3.0, 3.0, 1.0]
    with pytest.raises(MeaningError, match="agent b has no value"):
        of_groups.rates(Members(("a0", "a2", "b"), ("g", "g", "h")))


def test_an_agent_may_be_called_path() -> None:
    assert Clock(rate={"path": 2.0, "b": 1.0}).rates(Members(("path", "b"))).tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "speeds.csv is empty"),
        ("agent\na0\n", "needs columns agent, rate, each once; it has agent"),
        ("agent,rate,rate\na0,1,2\n", "two columns are called 'rate'"),
        ("agent,rate\na0,1\na1,2\n", r"speeds\.csv has no line for agent a2"),
        ("agent,rate\na0,1\na1,2\nx,1\n", r"speeds\.csv:4: no agent is called 'x'; there are a0, a1, a2"),
        (
            "agent,rate\na0,1\na1,2\n1,3\na2,1\n",
            r"speeds\.csv:4: agent a1 is named twice, as 'a1' and as '1'",
        ),
        ("agent,rate\na0,1\na1,2\na0,3\n", r"speeds\.csv:4: rate of 'a0' stands already at .*speeds\.csv:2"),
        ("agent,rate\na0,0\n", r"speeds\.csv:2: rate must be a positive finite number, got '0'"),
        ("agent,rate\na0,1\na1,-2\n", r"speeds\.csv:3: rate must be a positive finite number, got '-2'"),
        ("agent,rate\na0,fast\n", "got 'fast'"),
        ("agent,rate\na0,\n", "got ''"),
        ("agent,rate\na0,nan\n", "got 'nan'"),
        ("agent,rate\na0,inf\n", "got 'inf'"),
        ("agent,rate\na0,1e999\n", r"speeds\.csv:2: 1e999 is too large for a number"),
        ("agent,rate\na0\n", r"speeds\.csv:2: must have 2 fields, got 1"),
        ('agent,rate\n"a0,1\n', r"speeds\.csv:2: "),
    ],
)
def test_faulty_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MeaningError, match=message) as caught:
        clock(tmp_path / "speeds.csv", text).rates(Members(LABELS))
    assert caught.value.faults[0].key == "network.clock.rate.path"


STUDY: dict[str, Any] = {
    "name": "speeds",
    "network": {"topology": "star", "exchange": "request", "clock": {"rate": {"path": "speeds.csv"}}},
    "data": {"source": {"kind": "linear-regression", "agents": 3, "dimension": 2, "points": 20}},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 20, "rho": 1.0, "theta_max": 3.0},
        "loss": "squared",
        "regularizer": {"l2": 0.1},
    },
    "record": {"metrics": ["relative_fitness", "utilisation"], "every": 20},
}


class TestInAScenario:
    def of(self, folder: Path, rate: Any) -> p2psim.Scenario:
        network = STUDY["network"] | {"clock": {"rate": rate}}
        return p2psim.Scenario.from_dict(STUDY | {"network": network}, str(folder / "study.yaml"))

    def test_it_runs_as_with_the_same_numbers(self, tmp_path: Path) -> None:
        (tmp_path / "speeds.csv").write_text("agent,rate\n2,0.5\n0,1\n1,2.5\n")
        of_file = self.of(tmp_path, {"path": "speeds.csv"})
        of_numbers = self.of(tmp_path, {"0": 1.0, "1": 2.5, "2": 0.5})
        runs = [
            p2psim.run(scenario, tmp_path / name) for name, scenario in (("f", of_file), ("n", of_numbers))
        ]
        values = [run.metrics["value"].to_numpy() for run in runs]
        assert values[0].size
        np.testing.assert_array_equal(values[0], values[1])

    def test_its_contents_are_written_down(self, tmp_path: Path) -> None:
        (tmp_path / "speeds.csv").write_text("agent,rate\n0,1\n1,2.5\n2,0.5\n")
        scenario = self.of(tmp_path, {"path": "speeds.csv"})
        assert scenario.network.clock is not None
        table = scenario.network.clock.rate
        assert isinstance(table, RateTable)
        assert len(table.sha256) == 64
        (tmp_path / "speeds.csv").write_text("agent,rate\n0,1\n1,2.5\n2,0.6\n")
        with pytest.raises(InputError, match="is not the same file as before"):
            self.of(tmp_path, {"path": "speeds.csv", "sha256": table.sha256})

    def test_what_is_wrong_is_said_beforehand(self, tmp_path: Path) -> None:
        (tmp_path / "speeds.csv").write_text("agent,rate\n0,1\n1,2.5\n3,0.5\n")
        with pytest.raises(InputError, match=r"speeds\.csv:4: no agent is called '3'"):
            self.of(tmp_path, {"path": "speeds.csv"})


def test_rates_are_those_that_clocks_have() -> None:
    """A clock of rate 4 ticks four times as often: counts are Poisson, and differ by less than 4.5 of their spread."""
    rates = np.array([4.0, 1.0])
    network = p2psim.Network(
        p2psim.Network.of_graph(p2psim.Complete(agents=2), p2psim.Broadcast()).links,
        p2psim.Broadcast(),
        rates=rates,
    )
    events = p2psim.simulate_events(network, seed=1, time=500.0).read()
    counts = np.bincount(events["agent"][events["kind"] == 0], minlength=2)
    assert (abs(counts - 500 * rates) < 4.5 * np.sqrt(500 * rates)).all()
    assert math.isclose(counts.sum(), 2500, rel_tol=0.1)
