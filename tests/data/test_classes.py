"""Labels that are classes: names, numbers, and which records are kept."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from p2psim.core.errors import InputError, MeaningError
from p2psim.data.classes import class_numbers
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection
from p2psim.data.sources.arrays import Arrays

FRUITS = ["pear", "apple", "fig", "apple", "pear", "fig", "fig", "apple"]


def section(source, **tree):
    partition = {"kind": "equal", "agents": 2}
    return DataSection.model_validate({"source": source, "partition": partition, "shuffle": False, **tree})


def table(tmp_path, kind="csv", labels=FRUITS):
    """Rows numbered by their feature."""
    path = tmp_path / f"fruits.{kind}"
    if kind == "csv":
        lines = [f"{row},{label}" for row, label in enumerate(labels)]
        path.write_text("\n".join(["x,fruit", *lines]) + "\n")
    else:
        parquet.write_table(pa.table({"x": np.arange(len(labels)), "fruit": labels}), path)
    return {"kind": kind, "path": str(path), "y": "fruit"}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_text_of_a_table_is_classes_in_the_order_of_text(kind, tmp_path):
    data = prepare(section(table(tmp_path, kind), classes="all"), 0, 0)
    assert data.class_names == ("apple", "fig", "pear")
    assert data.class_count == 3
    assert data.y.dtype == np.float64
    assert [data.class_names[int(number)] for number in data.y] == FRUITS
    assert data.fitted["classes"] == ["apple", "fig", "pear"]
    assert data.y_max is None


def test_numbers_as_text_are_in_the_order_of_numbers(tmp_path):
    labels = ["10", "9", "100", "9"]
    data = prepare(section(table(tmp_path, "csv", labels), classes="all"), 0, 0)
    assert data.class_names == ("9", "10", "100")
    assert data.y.tolist() == [1, 0, 2, 0]


def test_two_classes_are_signs_in_the_order_of_the_list(tmp_path):
    data = prepare(section(table(tmp_path), classes=["pear", "apple"]), 0, 0)
    assert data.class_names == ("pear", "apple")
    kept = [(row, fruit) for row, fruit in enumerate(FRUITS) if fruit != "fig"]
    assert data.X[:, 0].tolist() == [row for row, _ in kept]
    assert data.y.tolist() == [1 if fruit == "apple" else -1 for _, fruit in kept]
    assert data.y_max == 1.0
    assert data.fitted["source"]["rows_of_other_classes"] == 3
    assert class_numbers(data.y, 2).tolist() == [int(fruit == "apple") for _, fruit in kept]


def test_classes_made_of_several_labels(tmp_path):
    one = section(table(tmp_path), classes={"round": ["apple", "fig"], "long": ["pear"]})
    data = prepare(one, 0, 0)
    assert data.class_names == ("round", "long")
    assert data.y.tolist() == [1 if fruit == "pear" else -1 for fruit in FRUITS]


def test_rows_of_other_classes_leave_their_columns_with_the_rows(tmp_path):
    """Owners by a column, of records of some classes: each gets its own."""
    path = tmp_path / "t.csv"
    path.write_text("x,who,y\n0,a,u\n1,b,v\n2,a,w\n3,b,u\n4,a,v\n")
    source = {"kind": "csv", "path": str(path), "y": "y"}
    tree = {"partition": {"kind": "column", "column": "who"}, "classes": ["u", "v"]}
    data = prepare(section(source, **tree), 0, 0)
    assert data.labels == ("a", "b")
    assert data.X[:, 0].tolist() == [0, 4, 1, 3]
    assert data.y.tolist() == [-1, 1, 1, -1]


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=30).filter(lambda y: len(set(y)) > 2))
def test_numbers_are_classes_named_by_their_values(labels):
    source = Arrays.rows(np.arange(len(labels))[:, None], np.array(labels))
    data = prepare(section(source, classes="all"), 0, 0)
    assert data.class_names == tuple(map(str, sorted(set(labels))))
    assert [int(data.class_names[n]) for n in class_numbers(data.y, data.class_count)] == labels
    assert prepare(section(source), 0, 0).class_names == (("-1", "1") if set(labels) == {-1, 1} else ())


def test_whole_numbers_need_no_quotation_marks():
    source = Arrays.rows(np.zeros((6, 1)), np.array([3, 8, 3, 5, 8, 8]))
    chosen, grouped = (
        prepare(section(source, classes=classes), 0, 0) for classes in ([8, 3], {8: [8], "other": [3, 5]})
    )
    assert chosen.class_names == ("8", "3")
    assert chosen.y.tolist() == [1, -1, 1, -1, -1]
    assert grouped.class_names == ("8", "other")
    assert grouped.y.tolist() == [1, -1, 1, 1, -1, -1]


def test_signs_are_two_classes_without_a_word():
    source = Arrays.rows(np.zeros((4, 1)), np.array([1.0, -1, -1, 1]))
    plain, named = prepare(section(source), 0, 0), prepare(section(source, classes="all"), 0, 0)
    assert plain.class_names == named.class_names == ("-1", "1")
    assert plain.y.tolist() == named.y.tolist() == [1, -1, -1, 1]
    assert "classes" not in plain.fitted


def test_records_that_owners_hold_already_are_numbered_together():
    y = [np.array([5, 7]), np.array([7, 9, 7])]
    source = Arrays.per_agent([np.zeros((2, 1)), np.zeros((3, 1))], y)
    tree = {"source": source, "classes": {"low": [5, 7], "high": [9]}}
    assert prepare(DataSection.model_validate(tree), 0, 0).y.tolist() == [-1, -1, -1, 1, -1]
    with pytest.raises(MeaningError, match=r"data\.classes: arrays gives each owner.*name 9 too"):
        prepare(DataSection.model_validate({**tree, "classes": [5, 7]}), 0, 0)


def test_test_records_are_classes_too():
    labels = np.arange(40) % 4
    one = section(Arrays.rows(labels[:, None], labels), classes="all", test_fraction=0.25)
    data = prepare(one, 0, 0)
    assert data.test_y.size == 10
    assert data.test_y.tolist() == data.test_X[:, 0].tolist()
    assert data.y.tolist() == data.X[:, 0].tolist()


def test_each_record_may_be_scaled_by_its_own_norm():
    source = Arrays.rows(np.array([[3.0], [4], [5]]), np.array([0, 1, 2]))
    tree = {"classes": "all", "scale": {"x": {"at": "each-record"}}}
    assert np.abs(prepare(section(source, **tree), 0, 0).X).max() <= 1


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            {"classes": ["apple", "plum"]},
            r"data\.classes: no record has the label 'plum'; the labels are apple, fig",
        ),
        ({"classes": ["apple", "fig", "apple"]}, r"data\.classes: a class is named twice"),
        ({"classes": {"a": ["apple"], "b": ["fig", "apple"]}}, "the label 'apple' is named twice"),
        ({"classes": "all", "scale": {"y": {}}}, r"data\.scale\.y: .*classes \(apple, fig, pear\)"),
        ({"classes": "all", "center": "user"}, r"data\.center: .*classes"),
        ({}, r"data\.source\.y: .*must hold numbers.*give data\.classes: all"),
    ],
    ids=["strange", "twice", "label-twice", "scaled", "centred", "text"],
)
def test_what_means_nothing_is_refused(tree, message, tmp_path):
    with pytest.raises(MeaningError, match=message):
        prepare(section(table(tmp_path), **tree), 0, 0)


def test_one_class_is_none(tmp_path):
    with pytest.raises(
        MeaningError, match=r"data\.classes: there must be two classes or more; all labels are fig"
    ):
        prepare(section(table(tmp_path, "csv", ["fig"] * 4), classes="all"), 0, 0)


def test_a_missing_label_is_named_by_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,fruit\n0,fig\n1,\n2,pear\n")
    source = {"kind": "csv", "path": str(path), "y": "fruit"}
    with pytest.raises(MeaningError, match=r"data\.source\.y: 1 rows have no value, the first is row 2 .*:3"):
        prepare(section(source, classes="all"), 0, 0)


def test_numbers_are_no_classes():
    source = Arrays.rows(np.zeros((1001, 1)), np.arange(1001.0))
    with pytest.raises(
        MeaningError, match=r"data\.classes: classes are up to 1,000 different labels; these are 1,001"
    ):
        prepare(section(source, classes="all"), 0, 0)


@pytest.mark.parametrize(
    "classes", [[], ["a"], "some", {"a": ["a"]}, {"a": [], "b": ["b"]}, [1.5, 2.5]], ids=str
)
def test_what_is_no_choice_of_classes_is_refused(classes):
    with pytest.raises((InputError, ValueError)):
        DataSection(source=Arrays.rows(np.zeros((2, 1)), np.zeros(2)), classes=classes)
