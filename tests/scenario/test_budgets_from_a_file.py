"""Budgets of a CSV file are those that somebody would have typed."""

import math

import pytest

from p2psim.core.errors import InputError
from p2psim.scenario.model import Scenario

STUDY = """
name: budgets
network: {topology: {kind: star, agents: 3}, exchange: request}
data: {source: {kind: linear-regression, points: 20}}
learning:
  algorithm: {kind: async-star, horizon: 10, rho: 1.0, theta_max: 3}
  loss: squared
  regularizer: {l2: 1.0e-4}
privacy: {mechanism: laplace, epsilon: EPSILON, sensitivity: {kind: clip, bound: 1.0}}
"""


@pytest.fixture
def load(tmp_path):
    def load(epsilon, table="agent,epsilon,why\n0,1.5,a\n2,inf,b\n1,3e1,c\n", sets=()):
        (tmp_path / "b.csv").write_text(table)
        (tmp_path / "s.yaml").write_text(STUDY.replace("EPSILON", epsilon))
        return Scenario.load(tmp_path / "s.yaml", list(sets))

    return load


def test_a_table_stands_for_its_numbers(load):
    read, typed = load("{path: b.csv}"), load("{0: 1.5, 2: .inf, 1: 30}")
    assert read.privacy.epsilon == {"0": 1.5, "2": math.inf, "1": 30.0}
    assert read.resolved() == typed.resolved()
    assert Scenario.parse(read.to_yaml()).resolved() == typed.resolved()


def test_a_table_may_be_one_of_several_values(load):
    swept = load("1", sets=["sweep.privacy.epsilon=[{path: b.csv}, 5]"])
    assert swept.sweep == {"privacy.epsilon": [{"0": 1.5, "2": math.inf, "1": 30.0}, 5]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("agent,budget\n0,1\n", "b.csv needs columns agent, epsilon, each once; it has agent, budget"),
        ("agent,epsilon\n0,1\n1,-2\n", "b.csv:3: epsilon must be a positive number, or inf, got '-2'"),
        *(
            (
                f"agent,epsilon\n0,1\n1,{text}\n",
                f"b.csv:3: epsilon must be a positive number, or inf, got '{text}'",
            )
            for text in ("nan", "NaN", "-inf", "0", "", "1_0", "0x1p3")
        ),
        ("agent,epsilon\n0,1\n1,1e400\n", "b.csv:3: 1e400 is too large for a number"),
        ("agent,epsilon\n0,1\n0,2\n", "b.csv:3: epsilon of '0' stands already at "),
        ("agent,epsilon\n0,1\n1,2\n", "agent 2 has no value"),
        ("agent,epsilon\n0,1\n1,2\n2,1\n9,1\n", "no agent or group is called '9'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(load, table, message):
    with pytest.raises(InputError, match="epsilon") as caught:
        load("{path: b.csv}", table)
    assert message in str(caught.value)
