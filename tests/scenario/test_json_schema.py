import copy
import json

import jsonschema
import pytest
from language import SHIPPED, VALID
from test_language_faults import TREE, dig, mappings

from p2psim.core.nodes import plain
from p2psim.scenario.model import Scenario
from p2psim.scenario.schema import json_schema
from p2psim.scenario.yaml import read, read_file


@pytest.fixture(scope="module")
def validator():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_fit_as_written_and_resolved(path, validator):
    validator.validate(plain(read_file(path)))
    validator.validate(plain(read(Scenario.load(path).to_yaml())))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_is_not_known_does_not_fit(path, validator):
    tree = plain(read_file(path))
    for section, key in (("network", "exchange"), ("learning", "loss"), ("record", "metrics")):
        spoiled = copy.deepcopy(tree)
        spoiled.setdefault(section, {})[key] = "unheard-of" if key != "metrics" else ["unheard-of"]
        assert not validator.is_valid(spoiled)


def test_short_forms_fit(validator):
    tree = copy.deepcopy(TREE)
    tree["network"] |= {"exchange": "request", "availability": "always", "clock": {"rate": {"0": 1}}}
    tree["data"] |= {"features": "whiten", "source": "lending"}
    tree["privacy"] |= {"allocation": "horizon", "accountant": "basic", "epsilon": {"small": 1, "large": 2.5}}
    tree["learning"]["algorithm"]["rho"] = 43
    tree["sweep"] = {"zip": {"seed": [1, 2], "data.features.0": ["whiten", "standardise"]}, "data.seed": [1]}
    validator.validate(tree)


@pytest.mark.parametrize("form", ["finals", ["finals", {"kind": "curves"}], {"kind": "finals"}], ids=str)
def test_a_figure_may_be_a_bare_name_as_the_loader_takes_it(form, validator):
    tree = copy.deepcopy(TREE) | {"figure": form}
    validator.validate(tree)
    assert Scenario.parse(json.dumps(tree)).figure[0].kind == "finals"
    assert not validator.is_valid(tree | {"figure": "final"})


def test_numbers_of_agents_may_be_a_list(validator):
    tree = copy.deepcopy(TREE)
    tree["privacy"]["epsilon"] = [1, 2.5]
    validator.validate(tree)
    tree["privacy"]["epsilon"] = [1, "much"]
    assert not validator.is_valid(tree)


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("network", {"topology": {"agents": 3}}),  # which one?
        ("network", {"topology": "starr"}),
        ("network", {"channel": {"loss": 1.5}}),
        ("privacy", {"epsilon": "much"}),
        ("privacy", {"sensitivity": "clip"}),  # a bound has no default
        ("record", {"metrics": ["psi"]}),
        ("record", {"every": 0}),
        ("sweep", {"privacy.epsilon": 10}),
        ("sweep", {"privaci.epsilon": [10]}),
        ("sweep", {"replicas": [1, 2]}),
        ("sweep", {"zip": {"privacy.epsilon": 10}}),
    ],
)
def test_bad_values_do_not_fit(section, keys, validator):
    tree = copy.deepcopy(TREE)
    tree[section] |= keys
    assert not validator.is_valid(tree)


@pytest.mark.parametrize("steps", [*mappings(TREE), ("sweep",)], ids=str)
def test_unknown_keys_do_not_fit_anywhere(steps, validator):
    tree = copy.deepcopy(plain(read(VALID)))
    dig(tree, steps)["no_such_key"] = 1
    assert not validator.is_valid(tree)
