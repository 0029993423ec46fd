"""Categories, dates, missing values and test files of the user's own tables, against pandas, scikit-learn and NumPy."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.impute import SimpleImputer

from p2psim.core.errors import InputError
from p2psim.data.encoding import keeping
from p2psim.data.mapping import RecordMap
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection

ROWS = 60


@pytest.fixture(scope="module")
def frame():
    """Rows with categories, codes, dates and gaps; the last 20 are public where a test says so."""
    random = np.random.default_rng(3)
    table = pd.DataFrame({
        "a": random.normal(size=ROWS).round(3), "b": random.normal(5, 2, ROWS).round(2),
        "city": random.choice(["Rome", "Lund", "Bern"], ROWS), "code": random.choice([10, 9, 2], ROWS),
        "when": pd.to_datetime("2019-12-30") + pd.to_timedelta(random.integers(0, 900, ROWS), "D"),
        "owner": random.choice(["u", "v"], ROWS), "y": random.normal(size=ROWS).round(3),
    })  # fmt: skip
    table.loc[random.choice(ROWS, 9, replace=False), "a"] = np.nan
    table.loc[random.choice(ROWS, 6, replace=False), "b"] = np.nan
    return table


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    german = frame.assign(a=frame["a"], when=frame["when"].dt.strftime("%Y-%m-%d"))
    german.to_csv(folder / "t.txt", index=False, sep=";", decimal=",")
    return {"csv": folder / "t.csv", "parquet": folder / "t.parquet", "german": folder / "t.txt"}


def section(files, kind="csv", partition=None, **source):
    public = {"public": source.pop("public")} if "public" in source else {}
    source = {"kind": kind, "path": str(files[kind]), "y": "y", **source}
    if kind == "german":
        source = {"separator": ";", "decimal": ",", **source, "kind": "csv"}
    partition = partition or {"kind": "equal", "agents": 1}
    return DataSection.model_validate({"source": source, "shuffle": False, "partition": partition, **public})


def prepared(*arguments, **named):
    return prepare(section(*arguments, **named), 0, None)


def refusal(*arguments, **named):
    with pytest.raises(InputError) as caught:
        prepared(*arguments, **named)
    return str(caught.value)


KINDS = pytest.mark.parametrize("kind", ["csv", "parquet", "german"])


@KINDS
def test_one_hot_is_that_of_pandas(files, frame, kind):
    data = prepared(files, kind, x=["city", "code"], categories={"city": "one-hot", "code": "one-hot"})
    expected = pd.get_dummies(frame[["city", "code"]], columns=["city", "code"], prefix_sep="=")
    mapped = RecordMap(section(files, kind), data.fitted)
    assert mapped.names == ("city=Bern", "city=Lund", "city=Rome", "code=2", "code=9", "code=10")
    assert data.X.tolist() == expected[list(mapped.names)].to_numpy(float).tolist()


@KINDS
def test_ordinal_is_the_place_in_the_sorted_list(files, frame, kind):
    data = prepared(files, kind, x=["code", "city"], categories={"city": "ordinal", "code": "ordinal"})
    expected = np.column_stack([np.unique(frame[name], return_inverse=True)[1] for name in ("code", "city")])
    assert data.X.tolist() == expected.tolist()
    assert data.fitted["source"]["codes"]["code"] == {"as": "ordinal", "categories": ["2", "9", "10"]}


@KINDS
@pytest.mark.parametrize("unit", ["years", "days"])
def test_dates_are_those_of_the_calendar(files, frame, kind, unit):
    data = prepared(files, kind, x=["when"], dates=unit)
    when = frame["when"].dt
    expected = (
        when.year + (when.dayofyear - 1) / np.where(when.is_leap_year, 366, 365)
        if unit == "years"
        else (frame["when"] - pd.Timestamp("1970-01-01")).dt.days
    )
    np.testing.assert_allclose(data.X[:, 0], expected, rtol=1e-15)
    assert data.fitted["source"]["codes"] == {"when": {"as": unit}}


@KINDS
@pytest.mark.parametrize("rule", ["mean", "median"])
def test_gaps_are_filled_by_what_public_rows_say(files, frame, kind, rule):
    data = prepared(files, kind, x=["a", "b"], missing=rule, indicator=True, public={"last": 20})
    known = SimpleImputer(strategy=rule).fit(frame[["a", "b"]].to_numpy()[40:])
    private = frame[["a", "b"]].to_numpy()[:40]
    np.testing.assert_allclose(data.X[:, :2], known.transform(private), rtol=1e-14)
    assert data.X[:, 2:].tolist() == np.isnan(private).astype(float).tolist()
    filled = data.fitted["source"]["filled"]
    np.testing.assert_allclose([filled["a"], filled["b"]], known.statistics_, rtol=1e-14)
    assert data.fitted["source"]["indicators"] == ["a", "b"]


def test_what_owners_hold_does_not_change_what_gaps_are_filled_with(files, frame, tmp_path):
    other = frame.copy()
    other.loc[:39, "a"] *= 100
    other.to_csv(tmp_path / "t.csv", index=False)
    asked = {"x": ["a", "b"], "missing": "mean", "public": {"last": 20}}
    filled = [
        prepared(which, **asked).fitted["source"]["filled"] for which in (files, {"csv": tmp_path / "t.csv"})
    ]
    assert filled[0] == filled[1]


@KINDS
def test_rows_with_gaps_are_dropped_and_counted(files, frame, kind):
    data = prepared(files, kind, x=["a", "b"], missing="drop")
    whole = frame[["a", "b"]].dropna()
    assert data.X.tolist() == whole.to_numpy().tolist()
    assert data.fitted["source"]["rows_dropped"] == ROWS - len(whole)
    assert f"{ROWS - len(whole)} of {ROWS} rows are left out" in data.warnings[-1]


def test_rows_without_a_label_are_dropped_with_their_owner(tmp_path):
    (tmp_path / "t.csv").write_text("a,who,y\n1,u,\n2,v,1\n3,u,2\n4,w,\n5,v,3\n")
    data = prepared(
        {"csv": tmp_path / "t.csv"}, missing="drop", partition={"kind": "column", "column": "who"}
    )
    assert (data.labels, data.X.tolist(), data.y.tolist()) == (("u", "v"), [[3], [2], [5]], [2, 1, 3])


def test_missing_categories_are_zeros_or_a_place_of_their_own(tmp_path):
    (tmp_path / "t.csv").write_text("c,d,y\nu,k,1\n,NA,2\nv,l,3\nu,k,4\n")
    source = {"categories": {"c": "one-hot", "d": "ordinal"}, "missing": "median", "public": {"last": 1}}
    data = prepared({"csv": tmp_path / "t.csv"}, **source)
    assert data.X.tolist() == [[1, 0, 0], [0, 0, -1], [0, 1, 1]]
    assert "first in row 2 (" in refusal({"csv": tmp_path / "t.csv"}, categories="one-hot")


def test_each_column_that_is_left_out_comes_with_the_option_that_keeps_it(files):
    data = prepared(files, x=None, missing="drop")
    [left_out, _] = data.warnings
    assert "city (" in left_out
    assert "when (" in left_out
    assert left_out.endswith(
        "to keep them, give data.source dates: {when: years} and categories: {city: one-hot, owner: one-hot}"
    )
    whole = prepared(files, categories="one-hot", dates="years", missing="drop")
    assert whole.fitted["source"]["dropped"] == []
    assert len(whole.warnings) == 1


@pytest.mark.parametrize("wrong", ["2024-13-01", "soon"])
def test_a_mistake_among_dates_does_not_make_categories_of_them(tmp_path, wrong):
    (tmp_path / "t.csv").write_text(f"a,when,city,y\n1,,Rome,1\n2,2024-01-01,Oslo,2\n3,{wrong},Rome,3\n")
    data = prepared({"csv": tmp_path / "t.csv"}, dates="years", categories="one-hot", missing="drop")
    assert data.fitted["source"]["columns"] == ["a", "city"]
    [left_out] = [warning for warning in data.warnings if "when" in warning]
    assert wrong in left_out
    source = {"dates": "years", "categories": {"when": "one-hot"}, "missing": "drop", "x": ["when"]}
    assert prepared({"csv": tmp_path / "t.csv"}, **source).X.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("when", "row", "wrong"),
    [
        (["2024-01-01", "2024-01-02T00:00Z", "2024-01-03"], 2, "a date with a zone, beside others without"),
        (["2024-01-01T00:00Z", "", "2024-01-02"], 3, "a date without a zone, beside others with a zone"),
        (["", "2024-01-01T00:00+02:00", "soon", "2024-01-02"], 3, "not a date such as 2026-11-29"),
        (["2024-01-01", "soon", "2024-01-02T00:00Z"], 2, "not a date such as 2026-11-29"),
    ],
)
def test_the_first_date_that_does_not_fit_is_named(tmp_path, when, row, wrong):
    (tmp_path / "t.csv").write_text("y,when\n" + "".join(f"{i},{date}\n" for i, date in enumerate(when)))
    message = refusal({"csv": tmp_path / "t.csv"}, dates={"when": "days"}, missing="drop")
    assert message.startswith("data.source.dates.when: column 'when' must become days; ")
    assert f"row {row} ({tmp_path}/t.csv:{row + 1}) has {when[row - 1]!r}, which is {wrong}" in message


def test_only_options_that_keep_a_column_are_named():
    columns = {
        "zoned": ["2024-01-01T00:00Z", "2024-01-02T00:00Z"], "mixed": ["2024-01-01T00:00Z", "2024-01-02"],
        "city": ["Rome", "Oslo"], "empty": ["", "NA"], "name": [f"n{i}" for i in range(1_001)],
    }  # fmt: skip
    told = [(name, pa.chunked_array([values])) for name, values in columns.items()]
    assert keeping(told) == (
        "; to keep them, give data.source dates: {zoned: years} and categories: {mixed: one-hot, city: one-hot}"
    )
    assert keeping(told[-2:]) == ""


def test_a_column_without_a_value_has_no_categories(tmp_path):
    (tmp_path / "t.csv").write_text("a,c,y\n1,,1\n2,NA,2\n")
    files = {"csv": tmp_path / "t.csv"}
    message = refusal(files, categories={"c": "one-hot"}, missing="drop")
    assert message == "data.source.categories.c: column 'c' must become one-hot; it holds no values"
    data = prepared(files, categories="one-hot", missing="drop")
    assert (data.fitted["source"]["columns"], data.X.tolist()) == (["a"], [[1], [2]])
    assert "c (no values)" in data.warnings[0]


def test_a_test_file_is_dealt_to_owners_by_the_column_or_in_turn(tmp_path):
    (tmp_path / "t.csv").write_text("a,who,y\n1,u,1\n2,v,2\n3,u,3\n4,v,4\n")
    (tmp_path / "tests.csv").write_text("y,who,a,more\n50,v,5,z\n60,x,6,z\n70,u,7,z\n80,v,8,z\n")
    files = {"csv": tmp_path / "t.csv"}
    asked = {"test_path": str(tmp_path / "tests.csv"), "x": ["a"]}
    data = prepared(files, partition={"kind": "column", "column": "who"}, **asked)
    assert (data.X.ravel().tolist(), data.test_X.ravel().tolist()) == ([1, 3, 2, 4], [7, 5, 8])
    assert (data.test_y.tolist(), data.test_offsets.tolist()) == ([70, 50, 80], [0, 1, 3])
    assert "1 of 4 test records belong to no owner" in data.warnings[-1]
    data = prepared(files, partition={"kind": "equal", "agents": 2}, **asked)
    assert (data.X.ravel().tolist(), data.test_X.ravel().tolist()) == ([1, 2, 3, 4], [5, 7, 6, 8])
    (tmp_path / "bad.csv").write_text("a,who,y\n1,u,1\n2,v,x\n")
    message = refusal(files, **{**asked, "test_path": str(tmp_path / "bad.csv")})
    assert "row 2 (" in message
    assert "bad.csv:3) has 'x'" in message
    (tmp_path / "bad.csv").write_text("a,y\n1,1\n")
    assert "it lacks who" in refusal(files, **{**asked, "test_path": str(tmp_path / "bad.csv")})


REFUSED = {
    "missing": ({"x": ["a"]}, "data.source.missing may be drop, mean or median"),
    "no public": ({"x": ["a"], "missing": "mean"}, "data.public: data.source.missing: mean is fitted on public"),
    "indicator": ({"x": ["y"], "indicator": True}, "cannot be a feature as well"),
    "indicator alone": ({"x": ["code"], "indicator": True}, "data.source.indicator: needs data.source.missing"),
    "indicator of dropped rows": (
        {"x": ["a"], "indicator": True, "missing": "drop"},
        "data.source.indicator: needs data.source.missing: mean or median",
    ),
    "text": ({"x": ["city"]}, "give data.source categories: {city: one-hot}"),
    "date": ({"x": ["when"]}, "give data.source dates: {when: years}"),
    "no date": ({"x": ["city"], "dates": {"city": "days"}}, "'city' must become days; row 1 ("),
    "unknown": ({"categories": {"town": "one-hot"}}, "data.source.categories.town: no column is called 'town'"),
    "y": ({"categories": {"y": "one-hot"}}, "data.source.categories.y: 'y' must be a feature"),
    "both": ({"categories": {"when": "one-hot"}, "dates": {"when": "days"}}, "not both"),
    "separator": ({"separator": ";", "decimal": ","}, 'give separator: ","'),
}  # fmt: skip


@pytest.mark.parametrize(("source", "message"), REFUSED.values(), ids=REFUSED)
def test_what_no_key_turns_into_numbers_is_refused(files, source, message):
    assert message in refusal(files, **source)


def test_too_many_categories_and_ambiguous_decimals_are_refused(tmp_path):
    rows = "".join(f"n{i};1,5;{i}\n" for i in range(1_001))
    (tmp_path / "t.csv").write_text(f"name;a;y\n{rows}")
    asked = {"separator": ";", "decimal": ",", "categories": "one-hot"}
    assert "'name' has 1,001 different values" in refusal({"csv": tmp_path / "t.csv"}, **asked)
    (tmp_path / "t.csv").write_text("a;y\n1,5;1\n1.234;2\n")
    assert "t.csv:3) has '1.234'" in refusal(
        {"csv": tmp_path / "t.csv"}, x=["a"], **asked | {"categories": None}
    )


@KINDS
def test_new_records_are_mapped_as_the_owners_were(files, frame, kind):
    source = {
        "categories": {"city": "one-hot", "code": "ordinal"}, "dates": "years", "missing": "mean", "indicator": True,
        "public": {"last": 20}, "partition": {"kind": "column", "column": "owner"},
    }  # fmt: skip
    told = section(files, kind, **source)
    data = prepare(told, 0, None)
    mapped = RecordMap(told, data.fitted)
    order = np.argsort(frame["owner"].to_numpy()[:40], kind="stable")
    np.testing.assert_array_equal(mapped(frame)[:40][order], data.X)
    as_text = frame.assign(when=frame["when"].dt.strftime("%Y-%m-%d"))
    np.testing.assert_array_equal(mapped(as_text), mapped(frame))
    np.testing.assert_array_equal(mapped(mapped.encoded(frame)), mapped(frame))
    for change, message in (
        ({"city": "Oslo"}, "'city' must become one-hot, as in the run; it holds 'Oslo', which is not one"),
        ({"when": "soon"}, "'when' must become years"),
        ({"a": "x"}, "'a' must hold numbers"),
    ):
        with pytest.raises(InputError, match=message):
            mapped(frame.assign(**change))
    with pytest.raises(InputError, match=r"9 columns are expected, got 2; a pandas\.DataFrame"):
        mapped(np.ones((1, 2)))


@pytest.mark.parametrize("keys", [{}, {"categories": "one-hot"}, {"x": ["a"]}])
@pytest.mark.parametrize("y", ["a", "b"])
def test_numbers_with_decimal_commas_are_not_taken_for_anything_else(keys, y, tmp_path, capsys):
    """The key that reads them is named, be they y, a feature by its name, or one of all columns of text."""
    rows = "".join(f"{i},{i % 7};{i}.5;{i % 3};{'uv'[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"a;b;c;owner\n{rows}")
    x = {"x": ["b" if y == "a" else "a"]} if "x" in keys else keys
    source = {"kind": "csv", "path": str(tmp_path / "t.csv"), "y": y, "separator": ";", **x}
    with (
        pytest.raises(InputError, match='decimal: "," makes numbers of a')
        if y == "a" or keys
        else nullcontext()
    ):
        prepared = prepare(
            DataSection(source=source, partition={"kind": "column", "column": "owner"}), 1, None
        )
        assert any('decimal: "," makes numbers of a' in warning for warning in prepared.warnings)


def test_other_files_are_called_what_they_are(tmp_path):
    text = "a,y\n" + "1,2\n" * 9
    files = {
        "sixteen.csv": (text.encode("utf-16"), "is UTF-16 text; save the file as UTF-8"),
        "sheet.csv": (b"PK\x03\x04\xa6\xff" + bytes(50), "spreadsheet; save the table as CSV"),
        "old.csv": (b"\xd0\xcf\x11\xe0\xff" + bytes(50), "spreadsheet; save the table as CSV"),
        "latin.csv": ("é" + text).encode("latin-1"),
    }
    files["latin.csv"] = (files["latin.csv"], "iconv --from-code LATIN1")
    for name, (content, message) in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            prepare(DataSection(source={"kind": "csv", "path": str(tmp_path / name), "y": "y"}), 1, None)
