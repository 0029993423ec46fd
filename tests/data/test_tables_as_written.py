"""Tables are read as they are written: owners by their text, numbers to the nearest double, nothing left out unsaid."""

import decimal
import io
import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from p2psim.analysis.forecasts.exchange import read_parties
from p2psim.core.distributions import Empirical
from p2psim.core.errors import InputError
from p2psim.core.files import checked
from p2psim.core.text_tables import matrix_of
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection
from p2psim.data.sources.arrays import Arrays

FAULTS = Path(__file__).parents[1] / "faults"


def prepared(path, kind="csv", x=None, y="y", column="owner", **tree):
    source = {"kind": kind, "path": str(path), "y": y, **({} if x is None else {"x": x})}
    partition = {"kind": "column", "column": column}
    section = {"source": source, "partition": partition, "shuffle": False, **tree}
    return prepare(DataSection.model_validate(section), 0, None)


def refusal(action, *arguments, **named):
    with pytest.raises(InputError) as caught:
        action(*arguments, **named)
    return str(caught.value)


def columns_of(data):
    """Values of each feature, in the order of owners and rows."""
    return dict(zip(data.fitted["source"]["columns"], data.X.T.tolist(), strict=True))


LABELS = st.one_of(
    st.sampled_from(
        ["007", "07", "7", "01001", "NA", "None", "null", "nan", "1.0", "1", "true", "a,b", 'q"q', " 7"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
WORDS = st.sampled_from(["?", "12,345", "1_000", "0x10", "2020-01-01", "one", "1.2.3", "٣"])


def quoted(cell):
    return '"' + cell.replace('"', '""') + '"'


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(LABELS, NUMBERS, NUMBERS), min_size=1, max_size=12),
    word=WORDS,
    place=st.integers(0, 11),
    form=st.sampled_from([repr, "{:.17g}".format, "{:.17e}".format, " {!r} ".format]),
    ends=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
)
@example([("007", 0.1, 1.0), ("7", 2.0, 3.0), ("NA", 1e22, 5e-324)], "?", 1, repr, "\n", True)
def test_csv_and_parquet_give_the_same_owners_and_features(rows, word, place, form, ends, bom):
    labels, a, y = zip(*rows, strict=True)
    mixed = [form(value) for value in a]
    mixed[place % len(mixed)] = word
    lines = ["owner,a,mixed,y"]
    lines += [
        ",".join(map(quoted, (label, form(u), m, form(v))))
        for label, u, m, v in zip(labels, a, mixed, y, strict=True)
    ]
    frame = pd.DataFrame({"owner": list(labels), "a": a, "mixed": mixed, "y": y})
    with tempfile.TemporaryDirectory() as folder:
        text, binary = Path(folder, "t.csv"), Path(folder, "t.parquet")
        text.write_bytes((ends.join(lines) + ends).encode("utf-8-sig" if bom else "utf-8"))
        frame.to_parquet(binary)
        made = [prepared(path, kind) for path, kind in ((text, "csv"), (binary, "parquet"))]
        refused = [
            refusal(prepared, path, kind, ["a", "mixed"])
            for path, kind in ((text, "csv"), (binary, "parquet"))
        ]
    assert "'mixed' must hold numbers" in refused[0]
    assert repr(word) in refused[0]
    assert f"row {place % len(mixed) + 1} " in refused[0]
    assert "'mixed' must hold numbers" in refused[1]
    for data in made:
        assert set(data.labels) == set(labels)
        assert data.fitted["source"]["columns"] == ["a"]
        assert data.fitted["source"]["dropped"] == ["mixed"]
        assert any("mixed" in warning for warning in data.warnings)
        held = {
            label: (data.X[start:end, 0].tolist(), data.y[start:end].tolist())
            for label, start, end in zip(data.labels, data.offsets[:-1], data.offsets[1:], strict=True)
        }
        assert held == {
            label: ([u for one, u, _ in rows if one == label], [v for one, _, v in rows if one == label])
            for label in labels
        }
    assert made[0].labels == made[1].labels
    assert made[0].X.tobytes() == made[1].X.tobytes()


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.sampled_from(["1", "2.5", '"3\n4"', ""]), min_size=3, max_size=3), min_size=1, max_size=8
    ),
    place=st.integers(0, 7),
    change=st.sampled_from([-2, -1, 1, 2]),
    blank=st.booleans(),
)
def test_a_row_of_another_length_is_refused_with_its_line(rows, place, change, blank):
    rows = [list(row) for row in rows]
    bad = place % len(rows)
    rows[bad] = (rows[bad] + ["9", "9"])[: 3 + change]
    rows[bad][0] = "1"
    lines = ["a,y,owner", *([""] if blank else []), *(",".join(row) for row in rows)]
    line = 1 + sum(text.count("\n") + 1 for text in lines[: len(lines) - len(rows) + bad])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text("\n".join(lines), encoding="utf-8")
        message = refusal(prepared, path)
    assert f"t.csv:{line}: must have 3 fields, got {3 + change}" in message


def test_the_files_on_which_faults_were_seen(tmp_path):
    assert "shift.csv:2: must have 4 fields, got 5" in refusal(prepared, FAULTS / "shift.csv")
    for name, owners in (("zeros", {"007", "07", "7", "01001"}), ("na", {"NA", "NO", "None", "SE", "null"})):
        frame = pd.read_csv(FAULTS / f"{name}.csv", dtype={"owner": str}, keep_default_na=False)
        frame.to_parquet(tmp_path / f"{name}.parquet")
        text, binary = prepared(FAULTS / f"{name}.csv"), prepared(tmp_path / f"{name}.parquet", "parquet")
        assert set(text.labels) == owners
        assert text.labels == binary.labels
        assert text.offsets.tolist() == binary.offsets.tolist()
        assert text.X.tobytes() == binary.X.tobytes()
    uci = prepared(FAULTS / "uci.csv")
    assert uci.fitted["source"]["dropped"] == ["dose"]
    assert any("dose ('?' in line 7)" in warning for warning in uci.warnings)
    assert "uci.csv:7) has '?'" in refusal(prepared, FAULTS / "uci.csv", x=["dose"])


def test_owners_that_are_numbers_keep_the_order_of_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y,owner\n" + "".join(f"{i},{i},{i}\n" for i in range(12)))
    assert prepared(path).labels == tuple(map(str, range(12)))


def test_every_type_of_parquet_is_a_number_or_named(tmp_path):
    n = 4
    columns = {
        "decimal": pa.array(
            [decimal.Decimal("0.1"), decimal.Decimal("1234567890.12"), None, None], pa.decimal128(20, 2)
        ),
        "whole": pa.array([1, 2, 3, 2**63], pa.uint64()),
        "truth": pa.array([True, False, True, False]),
        "half": pa.array(np.array([1, 2, 3, 4], np.float16)),
        "text": pa.array(["1", "2", "3", "4"]),
        "date": pa.array([0] * n, pa.date32()),
        "time": pa.array([0] * n, pa.timestamp("us")),
        "list": pa.array([[1]] * n),
        "coded": pa.array(["u", "v"] * 2).dictionary_encode(),
        "nothing": pa.nulls(n),
        "y": pa.array([1.0, 2, 3, 4]),
        "owner": pa.array(["a", "b"] * 2),
    }
    columns["decimal"] = pa.array(
        [decimal.Decimal(v) for v in ("0.10", "0.30", "1.15", "2.00")], pa.decimal128(20, 2)
    )
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    data = prepared(tmp_path / "t.parquet", "parquet")
    assert columns_of(data) == {
        "decimal": [0.1, 1.15, 0.3, 2.0], "whole": [1, 3, 2, 2.0**63], "truth": [1, 1, 0, 0], "half": [1, 3, 2, 4],
    }  # fmt: skip
    left_out = ["text", "date", "time", "list", "coded", "nothing"]
    assert data.fitted["source"]["dropped"] == left_out
    assert all(any(f"{name} (" in warning for warning in data.warnings) for name in left_out)
    for name in (*left_out[:-1],):
        assert f"{name!r} must hold numbers" in refusal(prepared, tmp_path / "t.parquet", "parquet", [name])
    assert "holds list" in refusal(prepared, tmp_path / "t.parquet", "parquet", ["half"], column="list")


def test_a_column_that_numbers_the_rows_is_named_and_no_feature(tmp_path):
    frame = pd.DataFrame(
        {"a": [1.0, 2.0], "y": [1.0, 2.0], "owner": ["u", "v"]}, index=pd.Index([5, 6], name="id")
    )
    frame.to_parquet(tmp_path / "t.parquet")
    frame.rename_axis(None).to_csv(tmp_path / "t.csv")
    for kind, name in (("parquet", "id"), ("csv", "(column 1)")):
        data = prepared(tmp_path / f"t.{kind}", kind)
        assert data.fitted["source"]["columns"] == ["a"]
        assert data.fitted["source"]["dropped"] == [name]
        assert name in data.warnings[0]


@pytest.mark.parametrize(
    ("source", "column"),
    [
        ("lending", "state"),
        ("lending-small", "addr_state"),
        ("hospital", "sex"),
        ("medpar", "white"),
        ("schools", "gender"),
    ],
)
def test_the_column_of_the_partition_is_never_a_feature(source, column):
    partition = {"kind": "column", "column": column}
    data = prepare(DataSection.model_validate({"source": source, "partition": partition}), 0, None)
    assert column not in data.fitted["source"]["columns"]
    assert column in data.fitted["source"]["dropped"]
    assert len(data.labels) > 1


def test_the_column_of_the_partition_is_refused_as_a_feature(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y,owner\n1,2,3\n2,3,4\n")
    assert "says who holds a row" in refusal(prepared, path, x=["a", "owner"])


@pytest.mark.parametrize(
    "name", ["Facility Id", "Permanent Facility Id", "FACILITY ID", "Hospital Id", "Other Provider"]
)
def test_no_column_of_sparcs_that_says_who_holds_a_record_is_a_feature(tmp_path, name):
    text = (FAULTS / "sparcs.csv").read_text().replace("Permanent Facility Id", name)
    (tmp_path / "s.csv").write_text(text)
    tree = {
        "source": {"kind": "hospital", "path": str(tmp_path / "s.csv")},
        "partition": {"kind": "equal", "agents": 2},
    }
    data = prepare(DataSection.model_validate(tree), 0, None)
    assert data.fitted["source"]["columns"] == ["Age Group", "Gender", "APR Severity of Illness Code"]
    assert name in data.fitted["source"]["dropped"]
    assert any(name in warning for warning in data.warnings)
    tree["partition"] = {"kind": "column", "column": name}
    assert {"1", "0005", "5"} <= set(prepare(DataSection.model_validate(tree), 0, None).labels)


BAD_TABLES = {
    "latin": ("a,y,owner\n1,2,é\n".encode("latin-1"), r"t.csv:2: is not UTF-8 text"),
    "latin header": ("é,y,owner\n1,2,3\n".encode("latin-1"), r"t.csv:1: is not UTF-8 text"),
    "infinite": (b"a,y,owner\n1,2,1\n1,2,inf\n", "an infinite value, the first is row 2 ("),
    "no owner": (b"a,y,owner\n1,2,1\n1,2,\n", "no value, the first is row 2 ("),
    "twice": (b"a,a,y,owner\n1,2,3,4\n", "t.csv:1: two columns are called 'a'"),
    "digits": (b"a,y,owner\n" + b"1" * 10_000 + b",2,3\n", "'a' must hold finite numbers"),
    "quote": (b'a,y,owner\n"1,2,3\n', "t.csv:2: a quotation mark is out of place, or never closed"),
    "quote at the end of a row": (b'a,y,owner\n1,2,"3\n1,2,4\n1,2,5\n', "t.csv:2: "),
    "quote in the last row": (b'a,y,owner\n1,2,3\n1,2,"4\n', "t.csv:3: "),
    "two quotes": (b'a,y,owner\n1,2,"3\n1,2,4\n1,2,"5\n', "t.csv:2: "),
    "quote inside": (b'a,y,owner\n"1"2,2,3\n', "t.csv:2: a quotation mark is out of place"),
    "long field": (b'a,y,owner\n"' + b"1\n" * 100_000, "t.csv:2: a field has more than 131,072 characters"),
    "empty": (b"", "is empty"),
    "no rows": (b"a,y,owner", "has no rows"),
}


@pytest.mark.parametrize(("content", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_tables_refused(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    told = refusal(prepared, tmp_path / "t.csv")
    assert message in told
    assert "\n" not in told
    assert len(told) < 500


def test_infinite_codes_of_parquet_are_refused(tmp_path):
    pd.DataFrame({"a": [1.0, 2], "y": [1.0, 2], "owner": [1.0, np.inf]}).to_parquet(tmp_path / "t.parquet")
    assert "an infinite value, the first is row 2" in refusal(prepared, tmp_path / "t.parquet", "parquet")


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "folder.csv").mkdir()
    for path, kind in (
        (tmp_path / "fifo.csv", "a pipe"),
        (tmp_path / "folder.csv", "a folder"),
        ("/dev/zero", "a device"),
    ):
        fault = f"is {kind}, not a file"
        assert fault in refusal(checked, str(path), "key")
        assert fault in refusal(prepared, path)
        assert fault in refusal(prepared, path, "parquet")
        assert fault in refusal(read_parties, [str(path)])
        with pytest.raises(ValidationError, match=fault):
            TypeAdapter(Empirical).validate_python(str(path))
    assert "home folder" in refusal(checked, "~no-such-user/a.csv", "key")


def test_a_matrix_is_read_as_written(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(b"\xef\xbb\xbf1,2 # first\n\n# none\n3,.5\n")
    assert matrix_of(path, "key").tolist() == [[1, 2], [3, 0.5]]
    for content, message in (
        ("1,2\n3\n", "m.csv:2: must have 2 fields"),
        ("1,x\n", "m.csv:1: 'x' is not a number"),
    ):
        path.write_text(content)
        assert message in refusal(matrix_of, path, "key")


X, Y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
LIKE_NUMBERS = {
    "masked": np.ma.masked_array(X, X == 3),
    "masked rows": list(np.ma.masked_array(X, X == 3)),
    "complex": X + 0j,
    "object": X.astype(object),
    "text": X.astype(str),
    "bytes": X.astype(bytes),
    "dates": X.astype("datetime64[s]"),
    "spans": X.astype("timedelta64[s]"),
    "ragged": [[1, 2], [3], [4, 5]],
    "huge": [[10**400, 1], [1, 1], [1, 1]],
    "none": None,
}


@pytest.mark.parametrize("given", LIKE_NUMBERS.values(), ids=LIKE_NUMBERS)
def test_arrays_that_are_no_plain_numbers_are_refused(given):
    refusal(Arrays.rows, given, Y)
    refusal(Arrays.per_agent, [given], [Y])
    if isinstance(given, np.ndarray):
        refusal(Arrays.rows, X, given[:, 0] if not np.ma.is_masked(given) else given[:, 1])
    refusal(Arrays.per_agent, given, [Y])


def test_numbers_of_any_width_are_taken():
    for kind in (bool, np.int8, np.uint64, np.float16, np.float32, np.longdouble):
        assert Arrays.rows(X.astype(kind), Y).records.X.tolist() == X.astype(kind).astype(float).tolist()
    assert Arrays.rows(np.ma.masked_array(X), Y).records.X.tolist() == X.tolist()


def test_objects_of_pandas_with_other_indexes_are_refused():
    frame, other = pd.DataFrame(X), pd.Series(Y, index=[2, 1, 0])
    assert "X and y have different indexes" in refusal(Arrays.rows, frame, other)
    assert "agent 0: X and y have different indexes" in refusal(Arrays.per_agent, [frame], [other])
    assert "X and owner have different indexes" in refusal(Arrays.rows, frame, Y, owner=other)
    assert Arrays.rows(frame, other.loc[frame.index]).records.y.tolist() == Y[::-1].tolist()


@pytest.mark.parametrize(
    "owner",
    [[7, "7", "a"], np.ma.masked_array([1, 2, 3], [0, 1, 0]), np.array([1j, 2, 3]), [b"a", b"b", b"c"]],
)
def test_owners_that_are_no_plain_labels_are_refused(owner):
    refusal(Arrays.rows, X, Y, owner=owner)


@pytest.mark.parametrize(
    "owner",
    [
        [1.0, np.inf, 2.0],
        [1.0, np.nan, 2.0],
        np.array(["a", None, "b"], object),
        np.array([7, "7", 8], object),
    ],
)
def test_owners_without_a_name_of_their_own_are_refused(owner):
    section = DataSection(source=Arrays.rows(X, Y, owner=owner))
    refusal(prepare, section, 0, None)


def test_owners_of_arrays_are_labels_as_written():
    data = prepare(DataSection(source=Arrays.rows(X, Y, owner=["007", "7", "NA"])), 0, None)
    assert set(data.labels) == {"007", "7", "NA"}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=20),
    st.sampled_from([1e-9, 1e-7, 1e-6, 0.1, 1, 1e298]),
)
def test_codes_stored_as_floating_point_numbers_are_told_apart_or_refused(codes, unit):
    owner = np.array([code * unit for code in codes])
    section = DataSection(
        source=Arrays.rows(np.ones((owner.size, 1)), np.ones(owner.size), owner=owner),
        partition={"kind": "column", "column": "owner"},
    )
    values = sorted(set(owner.tolist()))
    alike = [(a, b) for a, b in pairwise(values) if round(a, 6) == round(b, 6)]
    if any(b - a > 2**-23 * b for a, b in alike):
        assert "are the same to six places" in refusal(prepare, section, 0, None)
    else:
        data = prepare(section, 0, None)
        assert len(data.labels) == len(set(data.labels)) == len(values) - len(alike)


def test_compressed_tables_are_read(tmp_path):
    text = (FAULTS / "zeros.csv").read_text()
    for suffix in ("gz", "bz2", "xz", "zip"):
        path = tmp_path / f"zeros.csv.{suffix}"
        pd.read_csv(io.StringIO(text), dtype=str).to_csv(path, index=False)
        assert set(prepared(path).labels) == {"007", "07", "7", "01001"}
        path.write_bytes(path.read_bytes()[:40])
        assert str(path) in refusal(prepared, path)


@settings(max_examples=30, deadline=None)
@given(
    columns=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5),
    kind=st.sampled_from(["csv", "parquet"]),
)
def test_a_list_of_columns_names_each_once(columns, kind):
    frame = pd.DataFrame({name: [1.0, 2.0] for name in "abcy"} | {"owner": ["u", "v"]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t")
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        if len(set(columns)) == len(columns):
            assert columns_of(prepared(path, kind, columns)).keys() == set(columns)
            return
        told = refusal(prepared, path, kind, columns)
    again = next(i for i, name in enumerate(columns) if name in columns[:i])
    assert told == f"data.source.x.{again}: {columns[again]} is named twice"


def test_names_of_features_differ_whatever_the_source(tmp_path):
    text = (FAULTS / "sparcs.csv").read_text().replace("Gender", "Age Group ")
    (tmp_path / "s.csv").write_text(text)
    source = {"kind": "hospital", "path": str(tmp_path / "s.csv")}
    section = DataSection.model_validate({"source": source, "partition": {"kind": "equal", "agents": 2}})
    assert "two columns are called 'Age Group'" in refusal(prepare, section, 0, None)


def test_numbers_that_are_not_finite_are_placed_by_the_line_of_the_file(tmp_path):
    head, *rows = (FAULTS / "sparcs.csv").read_text().splitlines()
    before, charges = rows[2].split(',"$')
    rows[2] = f'{before.rpartition(",")[0]},inf,"${charges}'
    (tmp_path / "s.csv").write_text("\n".join([head, "", *rows]))
    source = {"kind": "hospital", "path": str(tmp_path / "s.csv")}
    section = DataSection.model_validate({"source": source, "partition": {"kind": "equal", "agents": 2}})
    assert "s.csv:5)" in refusal(prepare, section, 0, None)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(st.sampled_from(["1,0,2,u", '"3\n",0,4,v', "5,0,6,u\n"]), max_size=5),
    word=WORDS,
    blank=st.booleans(),
)
def test_a_column_left_out_is_explained_by_the_line_of_the_file(rows, word, blank):
    text = "\n".join(["a,b,y,owner", *([""] if blank else []), *rows, f'"{word}",0,7,u', ""])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text(text, encoding="utf-8")
        data = prepared(path)
    assert data.fitted["source"]["columns"] == ["b"]
    line = text.count("\n", 0, text.index(f'"{word}"')) + 1
    assert any(f"in line {line})" in warning for warning in data.warnings)
