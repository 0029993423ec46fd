"""Budgets of a CSV file are those that somebody would have typed."""

import math

import pytest
import yaml

from p2psim.core.errors import InputError
from p2psim.scenario.model import Scenario
from p2psim.scenario.schema import json_schema

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


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        ("{path: none.csv}", "9:47: privacy.epsilon.path: no such file"),
        ("{path: b.csv, sep: ';'}", "9:59: privacy.epsilon.sep: unknown key; known: path, sha256"),
        (
            "{file: b.csv}",
            "9:47: privacy.epsilon.file: must be a positive number, got 'b.csv'; did you mean path?",
        ),
        ("{csv: b.csv}", "; did you mean path?"),
        ("{columns: b}", "; did you mean column?"),
        ("b.csv", "got 'b.csv'; a file is {path: b.csv}"),
    ],
)
def test_what_is_wrong_with_a_table_is_one_message_at_its_place(load, epsilon, message):
    with pytest.raises(InputError) as raised:
        load(epsilon)
    (fault,) = raised.value.faults
    assert message in str(fault)


def test_another_separator_is_named(load):
    with pytest.raises(InputError, match="separate fields by commas, not by ';'"):
        load("{path: b.csv}", "agent;epsilon\n0;1\n")


def test_a_form_that_a_key_does_not_take_is_not_offered(load):
    sets = ["network.availability={kind: bernoulli, participation: {file: b.csv}}"]
    with pytest.raises(InputError) as raised:
        load("1", sets=sets)
    assert "did you mean" not in str(raised.value)


def test_the_schema_for_editors_takes_a_table(load):
    jsonschema = pytest.importorskip("jsonschema")
    judge = jsonschema.Draft202012Validator(json_schema())
    for epsilon, is_valid in (("{path: b.csv}", True), ("{path: 3, b: x}", False), ("[1, 2, 3]", True)):
        assert judge.is_valid(yaml.safe_load(STUDY.replace("EPSILON", epsilon))) is is_valid
