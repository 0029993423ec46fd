"""Tables of results that people group by, and show in notebooks and papers."""

import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_study import scenario

import p2psim
from p2psim.core.events import number_column, numbers_of, text_column
from p2psim.runs.parts import coded
from p2psim.runs.summary import latex, wide

EXCHANGES = ["request", {"kind": "request", "busy": "queue", "service": {"exponential": 0.5}}]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    record = {"metrics": ["relative_fitness", "messages"], "every": 10, "events": True}
    study = scenario(record=record, sweep={"network.exchange": EXCHANGES, "privacy.epsilon": [1, 100]})
    return p2psim.run(study, tmp_path_factory.mktemp("tables") / "run", progress=False)


def test_one_can_group_by_swept_parts(result):
    labels = ["request(service=0, busy=refuse)", "request(service=exponential=0.5, busy=queue)"]
    for table in (result.summary(), result.wide(), result.time_to("relative_fitness", 1e9)):
        assert table["network.exchange"].drop_duplicates().tolist() == labels
        assert list(table.groupby("network.exchange").groups) == sorted(labels)
        cells = table.groupby(["network.exchange", "privacy.epsilon"])["cell"].nunique()
        assert cells.tolist() == [1, 1, 1, 1]
        assert table["privacy.epsilon"].dtype.kind in "if"


def test_wide_holds_what_metrics_hold(result):
    table = result.wide()
    assert list(table.columns) == [
        "network.exchange", "privacy.epsilon", "cell", "replica", "model", "agent", "step", "time",
        "messages", "relative_fitness",
    ]  # fmt: skip
    for metric in ("messages", "relative_fitness"):
        of_metric = result.metrics[result.metrics["metric"] == metric]
        assert table[metric].notna().sum() == len(of_metric)
        assert np.isclose(table[metric].sum(), of_metric["value"].sum())
    keys = ["cell", "replica", "model", "agent", "step", "time"]
    assert not table.duplicated(keys).any()


def test_wide_keeps_moments_that_repeat_and_agents_apart():
    metrics = pd.DataFrame(
        {
            "cell": 0, "replica": 0, "model": "main", "time": [0.0, 0.0, 1.0, 1.0], "step": [0, 0, 1, 1],
            "agent": pd.array([None, None, 0, 1], dtype="Int32"), "metric": ["a", "a", "b", "b"],
            "value": [1.0, 2.0, 3.0, 4.0],
        }
    )  # fmt: skip
    table = wide(metrics)
    assert sorted(table["a"].dropna()) == [1, 2]
    assert table.dropna(subset="b").set_index("agent")["b"].to_dict() == {0: 3, 1: 4}


def last_values_of(metrics: pd.DataFrame, keys: list[str], group: int) -> pd.Series:
    """Last values of metrics that are written in row groups of this size."""
    with tempfile.TemporaryDirectory() as folder:
        table = pa.Table.from_pandas(metrics, preserve_index=False)
        pq.write_table(table, Path(folder) / "metrics.parquet", row_group_size=group)
        result = p2psim.Result(Path(folder), SimpleNamespace(files={}))
        return result.last_values(keys)


def test_the_last_value_is_that_of_the_last_record_even_if_undefined():
    metrics = pd.DataFrame(
        {
            "cell": 0, "replica": [0, 0, 1, 1, 0, 0, 0], "model": "main",
            "metric": ["a", "a", "a", "a", "b", "b", "b"],
            "agent": pd.array([None, None, None, None, 0, 0, 1], dtype="Int32"),
            "value": [1.0, np.nan, np.nan, 2.0, 3.0, 4.0, 6.0],
        }
    ).astype({"model": "category", "metric": "category"})  # fmt: skip
    last = last_values_of(metrics, ["cell", "model", "metric", "replica"], 3)
    expected = {"a": [np.nan, 2.0], "b (mean over agents)": [5.0]}
    for metric, values in expected.items():
        np.testing.assert_array_equal(last[:, :, metric], values)
    assert len(last) == 3


@given(
    rows=st.lists(
        st.tuples(*[st.integers(0, 1)] * 4, st.sampled_from([None, 0, 1])), min_size=1, max_size=40
    ),
    group=st.integers(1, 40),
)
def test_last_values_are_those_of_pandas_however_rows_lie(rows, group):
    """Row groups end anywhere, and series may be mixed."""
    metrics = pd.DataFrame(rows, columns=["cell", "replica", "model", "metric", "agent"])
    metrics["agent"] = metrics["agent"].astype("Int32")
    metrics["value"] = np.arange(len(rows), dtype=float)
    for name in ("model", "metric"):
        metrics[name] = metrics[name].map(["main", "b"].__getitem__).astype("category")
    keys = ["cell", "model", "metric", "replica"]
    whole = metrics[metrics["agent"].isna()]
    expected = whole.groupby(keys, observed=True)["value"].last().to_dict()
    single = metrics[metrics["agent"].notna() & ~metrics["metric"].isin(set(whole["metric"]))]
    ends = single.groupby([*keys, "agent"], observed=True)["value"].last()
    for (cell, model, metric, replica), value in ends.groupby(level=keys, observed=True).mean().items():
        expected[cell, model, f"{metric} (mean over agents)", replica] = value
    assert last_values_of(metrics, keys, group).to_dict() == expected


@pytest.mark.parametrize("kind", ["bool", "uint8", "int32", "int64", "float64"])
def test_columns_are_those_of_pyarrow(kind):
    """Written and read without `pyarrow.array`, which imports pandas: whole, sliced, in chunks, empty, with nulls."""
    values = np.random.default_rng(3).integers(0, 9, 21)
    values, known = (values % 2 if kind == "bool" else values).astype(kind), values != 4
    for column in (number_column(values), number_column(values[::2]), number_column(values[:0])):
        assert column.equals(pa.array(column.to_pylist(), kind if kind != "float64" else "double"))
        column.validate(full=True)
    whole = number_column(values, known)
    assert whole.equals(pa.array(values, mask=~known))
    for one in (whole, whole[3:17], pa.chunked_array([whole[5:], whole[:9]]), whole[:0]):
        expected = np.array([np.nan if value is None else value for value in one.to_pylist()], float)
        np.testing.assert_array_equal(numbers_of(one).astype(float), expected)
    words = ["ε", "", "b\u00a0c", "ε"]
    for texts in (words, []):
        assert text_column(texts).equals(pa.array(texts, "string"))
    codes = coded([*words, None])
    assert codes.to_pylist() == [*words, None]
    assert codes.dictionary.to_pylist() == sorted(set(words))


def test_a_notebook_shows_the_summary(result):
    shown = result._repr_html_()
    assert repr(result).split(":")[0].replace("'", "&#x27;") in shown
    assert shown.count("<tr") == 1 + len(result.summary())


def test_latex_has_a_row_per_row_and_escapes_names(result):
    text = result.to_latex()
    rows = text.splitlines()
    assert rows[0].startswith(r"\begin{tabular}{")
    assert rows[-1] == r"\end{tabular}"
    columns = len(rows[0].removeprefix(r"\begin{tabular}{").removesuffix("}"))
    body = [row for row in rows if row.endswith(r"\\")]
    assert len(body) == 1 + len(result.summary())
    assert {row.count(" & ") + 1 for row in body} == {columns} == {len(result.summary().columns) - 1}
    assert r"relative\_fitness" in text
    assert not re.search(r"(?<!\\)_", text)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("50 %_&#$", r"50 \%\_\&\#\$"),
        (np.inf, r"$\infty$"),
        (np.nan, "--"),
        (0.123456, "0.1235"),
        (1000, "1000"),
    ],
)
def test_latex_of_one_value(value, written):
    assert latex(pd.DataFrame({"x": [value]})).splitlines()[4] == rf"{written} \\"
