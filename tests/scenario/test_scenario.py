import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language import SHIPPED, VALID, faults, messages

from p2psim.core.errors import Fault, InputError
from p2psim.core.nodes import plain
from p2psim.scenario.model import Scenario
from p2psim.scenario.yaml import read


def scenario(**changes):
    tree = plain(read(VALID))
    for key, value in changes.items():
        tree[key] = value
    return Scenario.from_dict(tree)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_are_valid_and_survive_being_written(path):
    loaded = Scenario.load(path)
    text = loaded.to_yaml()
    again = Scenario.parse(text)
    assert again == loaded
    assert again.to_yaml() == text
    assert again.identity() == loaded.identity()


def test_every_default_is_written():
    tree = plain(read(Scenario.parse(VALID).to_yaml()))
    assert list(tree) == [name for name in Scenario.model_fields if name not in ("tune", "fitted")]
    assert tree["network"]["availability"] == {"kind": "always"}
    assert tree["network"]["engine"] == "auto"
    assert tree["network"]["clock"] == {"kind": "poisson", "rate": {"0": 1.0, "1": 2.0, "2": 3.0}}
    assert tree["learning"]["loss"] == {"kind": "squared", "intercept": False}
    assert tree["privacy"]["allocation"] == {"kind": "cap", "releases": 3}
    assert tree["privacy"]["accountant"] == ["basic"]
    assert tree["data"]["scale"]["x"]["bound"] == 1.0


def test_alternatives_that_were_not_given_are_not_written():
    tree = plain(read(Scenario.parse(VALID).to_yaml()))
    assert tree["network"]["channel"]["latency"] == {"uniform": [0.0, 1.0]}
    assert tree["network"]["exchange"]["service"] == {"exponential": 0.5}
    inside = scenario(sweep={"network.channel.latency.uniform": [[0, 1], [0, 2]]})
    assert Scenario.parse(inside.to_yaml()) == inside


def test_parts_in_the_sweep_are_written_in_full():
    swept = scenario(sweep={"privacy.allocation": ["horizon", {"kind": "cap", "releases": 2}]})
    assert plain(read(swept.to_yaml()))["sweep"] == {
        "privacy.allocation": [{"kind": "horizon"}, {"kind": "cap", "releases": 2}]
    }


NUMBERS = st.floats(1e-9, 1e9)
RATES = NUMBERS | st.fixed_dictionaries({"0": NUMBERS, "1": NUMBERS, "2": NUMBERS})


@settings(max_examples=60, deadline=None)
@given(
    name=st.from_regex(r"\A\w([\w .+=-]{0,20}\w)?\Z"),
    seed=st.integers(),
    rate=RATES,
    epsilons=st.lists(NUMBERS | st.just(float("inf")), min_size=1, max_size=4, unique=True),
    exchange=st.sampled_from(["request", {"kind": "request", "busy": "queue"}]),
    latency=NUMBERS | st.builds(lambda mean: {"exponential": mean}, NUMBERS),
    column=st.text(st.characters(codec="utf-8"), max_size=8),
)
def test_any_scenario_survives_being_written(name, seed, rate, epsilons, exchange, latency, column):
    tree = plain(read(VALID))
    tree |= {"name": name, "seed": seed, "sweep": {"privacy.epsilon": epsilons}}
    tree["network"] |= {"exchange": exchange, "clock": {"rate": rate}, "channel": {"latency": latency}}
    tree["data"]["partition"] = {"kind": "column", "column": column}
    made = Scenario.from_dict(tree)
    again = Scenario.parse(made.to_yaml())
    assert again == made
    assert again.to_yaml() == made.to_yaml()


def test_places_are_no_part_of_what_a_scenario_says():
    one = Scenario.parse(VALID)
    other = Scenario.parse("\n\n# moved\n" + VALID, "elsewhere.yaml")
    assert one == other
    assert one.to_yaml() == other.to_yaml()
    assert one.model_dump() == other.model_dump()
    assert one.identity() == other.identity()
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_scenario_cannot_be_changed():
    with pytest.raises(Exception, match="frozen"):
        Scenario.parse(VALID).seed = 1


def test_a_later_finding_gets_its_place():
    made = Scenario.parse(VALID, "s.yaml")
    line = VALID.splitlines().index("  public: {last: 100}") + 1
    assert made.locate(Fault("too many", "data.public.last")) == Fault(
        "too many", "data.public.last", "s.yaml", line, 18
    )
    # What was not written stands where the nearest that encloses it does.
    line = VALID.splitlines().index("  mechanism: laplace") + 1
    assert str(made.locate(Fault("no", "privacy.delta"))) == f"s.yaml:{line}:3: privacy.delta: no"
    assert made.locate(Fault("all of it")).path == "s.yaml"
    located = Fault("elsewhere", "seed", "t.yaml", 1, 1)
    assert made.locate(located) == located
    assert Scenario.from_dict(plain(read(VALID))).locate(Fault("no", "seed")) == Fault("no", "seed")


def test_empty_and_shapeless_files():
    for text in ("", "# nothing\n", "---\n"):
        assert messages(text) == ["s.yaml: is empty; a scenario has name, network, data and learning"]
    for text in ("just text", "[1, 2]", "5"):
        (message,) = messages(text)
        assert message == "s.yaml:1:1: must be a mapping with name, network, data and learning"
    assert [fault.key for fault in faults("seed: 1")] == ["name", "network", "data", "learning"]


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a\\b", "-x", "x.", "x ", "x\n", "x" * 101])
def test_a_name_must_do_for_a_folder(name):
    with pytest.raises(InputError, match="name: must be a name of"):
        scenario(name=name)


def test_numbers_of_numpy_are_numbers():
    assert scenario(seed=np.int64(5), replicas=np.int32(2)) == scenario()


def test_sections_may_be_given_as_models():
    whole = scenario()
    tree = {key: getattr(whole, key) for key in Scenario.model_fields}
    assert Scenario.from_dict(tree) == whole


def test_relative_paths_start_from_the_scenario(tmp_path):
    text = VALID.replace(
        "source: {kind: linear-regression, dimension: 4, points: 50}",
        "source: {kind: csv, path: own/d.csv, y: y}",
    )
    (tmp_path / "s.yaml").write_text(text)
    loaded = Scenario.load(tmp_path / "s.yaml")
    assert loaded.data.source.path == str(tmp_path / "own" / "d.csv")
    # Written elsewhere, it still means the same file.
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "scenario.yaml").write_text(loaded.to_yaml())
    assert Scenario.load(tmp_path / "run" / "scenario.yaml") == loaded


def test_arrays_are_written_as_their_digest_and_cannot_be_read_back():
    from p2psim.data.sources.arrays import Arrays

    source = Arrays.per_agent([np.eye(2)] * 3, [np.ones(2)] * 3)
    tree = plain(read(VALID))
    del tree["data"]
    made = Scenario.from_dict(tree | {"data": {"source": source}})
    assert made.data.source.records is source.records
    text = made.to_yaml()
    assert plain(read(text))["data"]["source"] == {"kind": "arrays", "records": source.records.digest}
    with pytest.raises(InputError, match="arrays are given in Python"):
        Scenario.parse(text)


def test_identity_leaves_out_what_can_be_added_to():
    whole = scenario()
    for changes in (
        {"replicas": 7},
        {"sweep": {"privacy.epsilon": [1, 2, 3]}},
        {"privacy": {**plain(read(VALID))["privacy"], "epsilon": 7}},  # swept, so this value is not used
        {"network": {**plain(read(VALID))["network"], "engine": "simpy"}},
    ):
        assert scenario(**changes).identity() == whole.identity(), changes
    for changes in (
        {"seed": 6},
        {"name": "other"},
        {"independent": ["noise"]},
        {"record": {"metrics": ["relative_fitness"], "every": 3}},
        {"sweep": {}},
        {"sweep": {"privacy.epsilon": [10, 100], "seed": [5]}},
    ):
        assert scenario(**changes).identity() != whole.identity(), changes


def test_fitted_numbers_are_kept_but_decide_nothing():
    fitted = scenario(fitted={"radius": 2.5, "steps": [{"mean": [0.0, 1.0]}]})
    assert plain(read(fitted.to_yaml()))["fitted"] == fitted.fitted
    assert Scenario.parse(fitted.to_yaml()) == fitted
    assert fitted.identity() == scenario().identity()
