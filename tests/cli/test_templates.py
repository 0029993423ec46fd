import numpy as np
import pytest
from pairs import few

from p2psim.cli.arguments import read_template, templates
from p2psim.cli.main import main
from p2psim.cli.new import new
from p2psim.core.errors import InputError
from p2psim.data.records import DataRequest
from p2psim.scenario.model import Scenario


def test_every_shipped_scenario_says_what_it_asks():
    shipped = templates()
    assert "three_banks" in shipped
    assert len(shipped) >= 4
    for name, question in shipped.items():
        assert len(question) > 20, name
        assert read_template(name).startswith(f"# {question}\n")


@pytest.mark.parametrize("template", few(templates(), 24))
def test_a_new_one_is_the_template_under_another_name(template, tmp_path):
    path = new("my-study", template, tmp_path / "deep")
    assert path == tmp_path / "deep" / "my-study.yaml"
    ours, theirs = path.read_text().splitlines(), read_template(template).splitlines()
    different = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    assert [a for a, _ in different] == ["name: my-study"]
    made = Scenario.load(path)
    assert made.name == "my-study"
    assert made == Scenario.parse(read_template(template), str(path)).model_copy(update={"name": "my-study"})


@pytest.mark.parametrize("template", ["own-budgets", "own_budgets.yaml"])
def test_a_template_is_named_as_a_study_or_a_file_is(template, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "--from", template]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"mine.yaml", "own_budgets.csv"}


def test_a_part_has_no_template(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "--part", "topology", "--from", "own_budgets"]) == 2
    assert main(["new", "mine", "--part", "topolgy"]) == 2
    said = capsys.readouterr().err
    assert "--from: is for new scenarios, and cannot be given with --part" in said
    assert "unknown kind 'topolgy'" in said
    assert said.endswith("did you mean topology?\n")
    assert not list(tmp_path.iterdir())


def test_tables_of_a_template_are_written_beside_it(tmp_path, capsys, monkeypatch):
    """Once: another scenario from the same one finds the table there, unless it is another."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "yours"):
        assert main(["new", name, "--from", "own_budgets"]) == 0
        assert capsys.readouterr().out == f"{name}.yaml\nown_budgets.csv\n"
        assert (
            Scenario.load(f"{name}.yaml").data.source.load(DataRequest(np.zeros(2, np.uint64))).y.size == 600
        )
    (tmp_path / "own_budgets.csv").write_text("of mine")
    assert main(["new", "others", "--from", "own_budgets"]) == 2
    assert "own_budgets.csv: already exists; nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "others.yaml").exists()


@pytest.mark.parametrize("name", ["12", "1e-5", "true", "null", "a study", "über"])
def test_names_that_yaml_would_take_for_something_else(name, tmp_path):
    assert Scenario.load(new(name, folder=tmp_path)).name == name


def test_nothing_is_overwritten(tmp_path):
    path = new("a.yaml", folder=tmp_path)
    path.write_text("mine")
    with pytest.raises(InputError, match=r"a\.yaml: already exists; nothing was written"):
        new("a", folder=tmp_path)
    assert path.read_text() == "mine"


def test_what_cannot_be_made(tmp_path):
    with pytest.raises(
        InputError, match=r"unknown scenario 'three_bank'; known: .*; did you mean three_banks"
    ):
        new("a", "three_bank", tmp_path)
    for name in ("../a", "", "a/b", "."):
        with pytest.raises(InputError, match="must be a name of"):
            new(name, folder=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        new("a", folder=tmp_path / "file" / "inside")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
