"""``p2psim data describe`` says of each column what it holds and which key keeps it."""

import json

import pandas as pd
import pytest

from p2psim.cli.main import main

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
        4, ["label", "id"], ["city"], {"city": 2},
    )  # fmt: skip
    pd.read_csv(path, sep=";", decimal=",").to_parquet(tmp_path / "t.parquet")
    assert main(["data", "describe", str(tmp_path / "t.parquet"), "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert [c["holds"] for c in same["columns"]] == [c["holds"] for c in told["columns"]]


def test_a_person_reads_it_in_a_table(path, capsys):
    assert main(["data", "describe", path, "--separator", ";", "--decimal", ","]) == 0
    text = capsys.readouterr().out
    assert "4 rows" in text
    assert "y could be: label, id" in text
    assert "owners could be named by: city (smallest owner: 2)" in text
    assert max(map(len, text.splitlines()[1:])) <= 80  # the first line names the file


def test_a_wrong_separator_is_named(path, capsys):
    assert main(["data", "describe", path]) == 2
    assert 'give separator: ";"' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["data", "describe", path, "--separator", ";;"])
