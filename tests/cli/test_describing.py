"""``p2psim data describe`` says of each column what it holds and which key keeps it."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML

from p2psim.cli.main import main
from p2psim.core.errors import OptionError
from p2psim.data.sources.files import CSVFile

FILE = """id;city;when;dose;note;label
1;Rome;2020-01-01;1,5;a;0,1
2;Lund;2020-03-01;;b;0,2
3;Rome;2021-01-01;2,5;c;0,3
4;Lund;;0,5;d;0,4
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "t.csv").write_text(FILE)
    return str(tmp_path / "t.csv")


def test_columns_are_what_a_person_reads_in_them(path, tmp_path, capsys):
    assert main(["data", "describe", path, "--separator", ";", "--decimal", ",", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    columns = {column["column"]: column for column in told["columns"]}
    assert {name: column["holds"] for name, column in columns.items()} == {
        "id": "numbers", "city": "categories", "when": "dates", "dose": "numbers", "note": "categories",
        "label": "numbers",
    }  # fmt: skip
    assert columns["city"]["counts"] == {"Lund": 2, "Rome": 2}
    assert (columns["dose"]["missing"], columns["dose"]["least"], columns["dose"]["most"]) == (1, 0.5, 2.5)
    assert (columns["when"]["least"], columns["when"]["most"]) == ("2020-01-01", "2021-01-01")
    assert columns["city"]["first"] == "'Rome' in line 2"
    assert (told["rows"], told["y"], told["partition"], told["smallest"]) == (
        4, ["label", "city", "id"], ["city"], {"city": 2},
    )  # fmt: skip
    pd.read_csv(path, sep=";", decimal=",").to_parquet(tmp_path / "t.parquet")
    assert main(["data", "describe", str(tmp_path / "t.parquet"), "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert [c["holds"] for c in same["columns"]] == [c["holds"] for c in told["columns"]]


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.string(), pa.date32(), pa.timestamp("us"), pa.bool_(), pa.int64()]
)
def test_a_column_without_values_holds_nothing(kind, tmp_path, capsys):
    pq.write_table(pa.table({"y": [1.0, 2.0], "empty": pa.array([None, None], kind)}), tmp_path / "t.parquet")
    assert main(["data", "describe", str(tmp_path / "t.parquet"), "--json"]) == 0
    [_, column] = json.loads(capsys.readouterr().out)["columns"]
    assert (column["holds"], column["missing"], column["different"]) == ("nothing", 2, 0)


def test_a_column_that_a_run_would_refuse_says_so(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("y,far,huge,gap\n1,inf,1e999,\n2,1,1,3\n")
    assert main(["data", "describe", str(tmp_path / "t.csv"), "--json"]) == 0
    becomes = [column["becomes"] for column in json.loads(capsys.readouterr().out)["columns"]]
    infinite = "refused: a value is infinite or beyond floating-point numbers"
    assert becomes == ["a number", infinite, infinite, "refused; missing: drop, mean or median keeps it"]


def test_a_person_reads_it_in_a_table(path, capsys):
    assert main(["data", "describe", path, "--separator", ";", "--decimal", ","]) == 0
    text = capsys.readouterr().out
    assert "4 rows" in text
    assert "y could be: label, id\ny could be, with data.classes: all: city\n" in text
    assert "owners could be named by: city (smallest owner: 2)" in text
    assert max(len(line) for line in text.splitlines() if path not in line) <= 80


def test_a_wrong_separator_is_named(path, capsys):
    assert main(["data", "describe", path]) == 2
    assert 'give --separator ";"' in capsys.readouterr().err
    for mark in (";;", "", '"', "\n", "é"):
        with pytest.raises(SystemExit) as ended:
            main(["data", "describe", path, "--separator", mark])
        assert ended.value.code == 2


def test_the_same_mark_for_fields_and_decimals_is_refused(tmp_path, capsys):
    """But for numbers in quotation marks."""
    (tmp_path / "t.csv").write_text('y,x\n"1,5",2\n"0,5",3\n"0,1",4\n')
    path = str(tmp_path / "t.csv")
    assert main(["data", "describe", path, "--separator", ",", "--decimal", ","]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "--separator, --decimal: both are ," in printed.err) == ("", True)
    assert main(["data", "describe", path, "--decimal", ","]) == 0
    assert "y could be: y, x" in capsys.readouterr().out
    with pytest.raises(OptionError, match=r"decimal: ',' is the separator, too"):
        CSVFile(path=path, y="y", separator=",", decimal=",")
    assert CSVFile(path=path, y="y", decimal=",").decimal == ","


def test_options_are_repeated_as_keys_of_a_scenario(path, tmp_path, capsys):
    assert main(["data", "describe", path, "--separator", ";", "--decimal", ","]) == 0
    assert 'separator: ";", decimal: ","' in " ".join(capsys.readouterr().out.split())
    (tmp_path / "tabs.csv").write_text("y\tx\n1\t2\n3\t4\n")
    assert main(["data", "describe", str(tmp_path / "tabs.csv"), "--separator", r"\t"]) == 0
    assert r'separator: "\t"' in " ".join(capsys.readouterr().out.split())


def test_a_source_that_is_shown_reads_the_file(tmp_path, capsys):
    """Whatever the file is called; a Parquet file has no marks."""
    path = tmp_path / "of 2026, 'all': {new}.csv"
    path.write_text("y;x\n1;2\n3;4\n")
    assert main(["data", "describe", str(path), "--separator", ";"]) == 0
    shown = " ".join(capsys.readouterr().out.split()).partition("data.source: ")[2]
    source = YAML(typ="safe").load(shown.replace("y: …", "y: y"))
    assert CSVFile(**source).read(source["path"], "path").table.num_rows == 2
    pd.DataFrame({"y": [1.0], "x": [2.0]}).to_parquet(tmp_path / "t.parquet")
    for option in (["--separator", ";"], ["--decimal", ","]):
        assert main(["data", "describe", str(tmp_path / "t.parquet"), *option]) == 2
        assert "--separator, --decimal: are for CSV files" in capsys.readouterr().err


def test_a_column_with_decimal_commas_names_the_option(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("y;x\n1;2,5\n3;4,5\n")
    assert main(["data", "describe", str(tmp_path / "t.csv"), "--separator", ";"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "decimal commas" in text
    assert "--decimal ," in text


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ([True, False, True, True], "numbers"),
        (["yes", "no", "no", "yes"], "categories"),
        ([0, 1, 1, 0], "numbers"),
        ([-1.0, 1.0, 1.0, -1.0], "numbers"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_of_two_values_could_be_y(values, holds, suffix, tmp_path, capsys):
    table = pd.DataFrame({"bank": ["a", "b", "a", "b"], "paid": values, "age": [20, 30, 41, 52], "same": 1})
    path = tmp_path / f"t.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    assert main(["data", "describe", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["columns"][1]["holds"] == holds
    assert (told["y"], told["classes"]) == (["age", "paid", "bank"], ["bank", "paid"])
    assert main(["data", "describe", str(path)]) == 0
    assert "y could be: age\ny could be, with data.classes: all: paid, bank\n" in capsys.readouterr().out


@pytest.mark.parametrize("strange", ["\x1b[2J", "\x07", "\x85", "\u202e", "\x00"])
def test_control_characters_of_a_file_are_escaped(strange, tmp_path, capsys):
    """In names and values, on either stream, though no terminal reads them."""
    table = pa.table({f"y{strange}": [1.0, 2.0, 3.0], f"x{strange}": [f"a{strange}", "b", "c"]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert main(["data", "describe", str(tmp_path / "t.parquet")]) == 0
    printed = capsys.readouterr().out
    assert strange not in printed
    assert ascii(strange)[1:-1] in printed
    (tmp_path / "t.csv").write_text(f"y{strange},x,x{strange}\n1,2,3\n1,2\n".replace("\x00", "\x01"))
    assert main(["data", "describe", str(tmp_path / "t.csv")]) == 2
    assert strange not in capsys.readouterr().err


def test_what_may_only_number_the_rows_comes_last_as_y(tmp_path, capsys):
    """Whole numbers without a gap, in any order; not those of a few rows, or with a gap."""
    rows = "".join(f"{(7 * i) % 30},{i % 3},{3 * i},{i}.5\n" for i in range(30))
    (tmp_path / "t.csv").write_text(f"visit,ward,threes,cost\n{rows}")
    assert main(["data", "describe", str(tmp_path / "t.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["y"] == ["cost", "threes", "ward", "visit"]
    becomes = {column["column"]: column["becomes"] for column in told["columns"]}
    assert "only numbers the rows" in becomes["visit"]
    assert {becomes["ward"], becomes["threes"], becomes["cost"]} == {"a number"}


def test_a_file_that_is_absent_is_one_message(capsys):
    assert main(["data", "describe", "none.csv"]) == 2
    assert capsys.readouterr().err == "p2psim: FILE: no such file: none.csv\n"
