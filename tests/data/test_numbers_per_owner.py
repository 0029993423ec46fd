"""Columns of the records that give each owner a number: budgets, rates and participation."""

import pytest

import p2psim
from p2psim.core.errors import InputError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection
from p2psim.scenario.model import Scenario

ROWS = [
    ("a", "who", "budget", "speed", "share", "y"),
    (1, "u", "2.5", 1, 0.5, 0.1), (2, "v", "10", 2, 1, 0.2), (3, "u", "2.50", 1, 0.5, 0.3), (4, "w", "4", 3, 0.8, 0.4),
]  # fmt: skip
TABLE = "".join(",".join(map(str, row)) + "\n" for row in ROWS)
MERGED = {"by": "records", "cut": [2], "names": ["few", "many"], "merge": True}
LISTED = ["budget", "speed", "share"]


def prepared(folder, text=TABLE, source=None, **data):
    (folder / "t.csv").write_text(text)
    tree = {
        "source": {"kind": "csv", "path": str(folder / "t.csv"), "y": "y"} | (source or {}),
        "partition": {"kind": "column", "column": "who"}, "per_owner": LISTED, **data,
    }  # fmt: skip
    return prepare(DataSection.model_validate(tree), 0, None)


def study(folder, epsilon, rate, participation, **data):
    (folder / "t.csv").write_text(TABLE)
    return {
        "name": "budgets",
        "network": {
            "topology": "star", "exchange": "request", "clock": {"rate": rate},
            "availability": {"kind": "bernoulli", "participation": participation},
        },
        "data": {
            "source": {"kind": "csv", "path": str(folder / "t.csv"), "y": "y"}, "scale": {"x": {"at": 5.0}},
            "partition": {"kind": "column", "column": "who"}, **data,
        },
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": 12, "rho": 1.0, "theta_max": 3},
            "loss": "squared", "regularizer": {"l2": 1e-3},
        },
        "privacy": {"mechanism": "laplace", "epsilon": epsilon, "sensitivity": {"kind": "clip", "bound": 1.0}},
    }  # fmt: skip


def test_numbers_are_as_written_and_no_features(tmp_path):
    data = prepared(tmp_path, public={"last": 2}, shuffle=False, features=["standardise"])
    assert data.labels == ("u", "v")
    assert {name: values.tolist() for name, values in data.columns.items()} == {
        "budget": [2.5, 10], "speed": [1, 2], "share": [0.5, 1],
    }  # fmt: skip
    assert data.fitted["source"]["columns"] == ["a"]
    assert data.fitted["source"]["dropped"] == []
    german = TABLE.replace(",", ";").replace(".", ",")
    data = prepared(tmp_path, german, {"separator": ";", "decimal": ","})
    assert data.columns["budget"].tolist() == [2.5, 10, 4]


def test_rows_that_are_dropped_give_no_number(tmp_path):
    data = prepared(tmp_path, TABLE + ",x,1,1,1,5\n6,w,4,3,0.8,\n", {"missing": "drop"})
    assert (data.labels, data.columns["budget"].tolist()) == (("u", "v", "w"), [2.5, 10, 4])


def test_columns_mean_what_mappings_mean(tmp_path):
    """Budgets, rates and participation, in a run: the same events, models and ledger."""
    columns = study(
        tmp_path, {"column": "budget"}, {"column": "speed"}, {"column": "share"}, per_owner=LISTED
    )
    typed = study(
        tmp_path, {"u": 2.5, "v": 10, "w": 4}, {"u": 1, "v": 2, "w": 3}, {"u": 0.5, "v": 1, "w": 0.8}
    )
    typed["data"]["source"]["x"] = ["a"]
    scenario = Scenario.from_dict(columns)
    assert Scenario.parse(scenario.to_yaml()).resolved() == scenario.resolved()
    read, expected = p2psim.simulate(scenario), p2psim.simulate(Scenario.from_dict(typed))
    for table in ("events", "metrics", "ledger", "agents"):
        assert getattr(read, table).equals(getattr(expected, table))
    assert read.ledger["budget"].tolist() == [2.5, 10, 4]


@pytest.mark.parametrize("name", ["records", "label"])
def test_a_column_may_be_called_as_what_is_known_of_owners_anyway(tmp_path, name):
    named = study(tmp_path, 5.0, 1.0, {"column": name}, per_owner=[name])
    named["data"]["source"]["x"] = ["a"]
    (tmp_path / "t.csv").write_text(TABLE.replace("share", name))
    read = p2psim.simulate(Scenario.from_dict(named))
    expected = study(tmp_path, 5.0, 1.0, {"column": "share"}, per_owner=["share"])
    expected["data"]["source"]["x"] = ["a"]
    assert read.events.equals(p2psim.simulate(Scenario.from_dict(expected)).events)


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        (TABLE.replace("2.50", "3"), {}, "owner u has 2.5 in row 1 ({0}:2) and 3 in row 3 ({0}:4), column 'budget'"),
        (TABLE.replace("v,10", "v,"), {}, "column 'budget' must hold finite numbers; 1 are missing"),
        (TABLE.replace("v,10", "v,inf"), {}, "({0}:3): 'inf'"),
        (TABLE.replace("v,10", "v,much"), {}, "data.per_owner: column 'budget' must hold numbers; row 2 ({0}:3) has"),
        (TABLE, {"per_owner": ["bugdet"]}, "data.per_owner: no column is called 'bugdet' (did you mean 'budget'?)"),
        (TABLE, {"per_owner": ["budget", "speed", "budget"]}, "data.per_owner.2: budget is named twice"),
        (TABLE, {"per_owner": ["y"]}, "data.per_owner: 'y' holds a number per owner"),
        (TABLE, {"source": {"x": ["a", "share"]}}, "data.per_owner: 'share' holds a number per owner"),
        (TABLE, {"groups": MERGED}, "data.per_owner: owners that merge may have different numbers"),
    ],
)  # fmt: skip
def test_columns_that_give_no_number_are_refused(tmp_path, text, data, message):
    with pytest.raises(InputError) as caught:
        prepared(tmp_path, text, **data)
    assert message.format(tmp_path / "t.csv") in str(caught.value)


def test_generated_records_have_no_columns():
    tree = {"source": {"kind": "linear-regression", "agents": 2}, "per_owner": ["budget"]}
    with pytest.raises(InputError, match=r"data\.per_owner: is for csv and parquet, got linear-regression"):
        prepare(DataSection.model_validate(tree), 0, None)


@pytest.mark.parametrize(
    ("asked", "listed", "message"),
    [
        (({"column": "budget"}, 1.0, 1.0), ["speed"], "privacy.epsilon.column: needs data.per_owner: [speed, budget]"),
        ((1.0, {"column": "speed"}, 1.0), None, "network.clock.rate.column: needs data.per_owner: [speed]"),
        ((1.0, 1.0, {"column": "speed"}), LISTED, "2 in column 'speed'; a number above 0 and at most 1 is expected"),
        (({"column": "a", "u": 2}, 1.0, 1.0), LISTED, "privacy.epsilon"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_a_key_are_refused(tmp_path, asked, listed, message):
    with pytest.raises(InputError) as caught:
        p2psim.simulate(
            Scenario.from_dict(study(tmp_path, *asked, **({"per_owner": listed} if listed else {})))
        )
    assert message in str(caught.value)
