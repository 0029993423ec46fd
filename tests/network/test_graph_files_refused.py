"""A file that is no graph ends a command with one message, exit code 2 and nothing written."""

import shutil
from pathlib import Path

import pytest
import yaml

from p2psim.cli.main import main
from p2psim.core.errors import MeaningError
from p2psim.network.graph_formats import read_edges

FAULTS = Path(__file__).parents[1] / "faults"

DEEP = "graph [\n" + "a [\n" * 5000 + "]" * 5001
FILES = {
    "deep.gml": DEEP.encode(),
    "cut.gml": b"graph [ node [ id 0 ]",
    "latin.gml": 'graph [ node [ id 0 label "caf\xe9" ] ]'.encode("latin-1"),
    "huge.gml": b"graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 weight 1"
    + b"0" * 10_000
    + b" ] ]",
    "deep.edgelist": b"0 1 {'weight': " + b"[" * 5000 + b"]" * 5000 + b"}",
    "comma.graphml": b'<graphml><key id="w" for="edge" attr.name="weight" attr.type="double"/><graph><node id="0"/>'
    b'<node id="1"/><edge source="0" target="1"><data key="w">1,5</data></edge></graph></graphml>',
    "unlike.csv": b"0,1\n1.0000000001,0\n",
    "words.csv": b"0,a\na,0\n",
}


def scenario(graph: str) -> str:
    return yaml.safe_dump(
        {
            "name": "graph",
            "network": {"topology": {"kind": "file", "path": graph}, "exchange": "gossip"},
            "data": {"source": {"kind": "linear-regression", "points": 5, "dimension": 2}},
            "learning": {
                "algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 2},
                "loss": "squared",
                "regularizer": {"l2": 0.1},
            },
        }
    )


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("name", FILES)
def test_one_message(name, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(FILES[name])
    (tmp_path / "s.yaml").write_text(scenario(name))
    before = sorted(path.name for path in tmp_path.iterdir())
    assert main([command, "s.yaml"]) == 2
    told = capsys.readouterr().err.removeprefix(
        "compiling the kernels, once; later runs take them from the cache\n"
    )
    assert told.count("\n") == 1, told
    assert "s.yaml:" in told
    assert "network.topology.path: " in told
    assert name in told or "row 0, column 1" in told or "the link 0 – 1" in told
    for word in ("Error", "codec", "np.float64", "recursion"):
        assert word not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["igraph.gml", "default.graphml", "both.gml", "round.csv"])
def test_what_is_fine_is_read(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(FAULTS / name, tmp_path)
    (tmp_path / "s.yaml").write_text(scenario(name))
    assert main(["check", "s.yaml", "--no-pilot"]) == 0


def test_an_ambiguous_table_of_spans(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("labels.yaml", "zero_based.csv", "onebased.csv"):
        shutil.copy(FAULTS / name, tmp_path)
    assert main(["run", "labels.yaml"]) == 2
    told = capsys.readouterr().err
    assert "zero_based.csv:3: '1' is the label of agent 0" in told
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('node [ id 0 label 7 ] node [ id 1 label "7" ] edge [ source 0 target 1 ]', "same label '7'"),
        (
            'node [ id 0 label "x" ] node [ id 1 label "y" ] edge [ source 0 target 1 weight -1 ]',
            "the link x – y must be a positive number, got -1",
        ),
        (
            'node [ id 0 label "x" ] node [ id 1 label "y" ] edge [ source 0 target 1 ] edge [ source 1 target 1 ]',
            "agent y is linked with itself",
        ),
        (
            'node [ id 0 label "x" ] node [ id 1 label "y" ] node [ id 2 label "z" ] edge [ source 0 target 1 ]',
            "agent z has no link",
        ),
    ],
)
def test_faults_of_links_are_said_once_and_by_name(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owners = sorted({word for word in "xyz7" if f'"{word}"' in text})
    rows = "".join(f"{owner},{i}.5,{i}.25\n" for owner in owners for i in range(4))
    (tmp_path / "data.csv").write_text(f"owner,x,y\n{rows}")
    (tmp_path / "net.gml").write_text(f"graph [ {text} ]")
    (tmp_path / "net.yaml").write_text(
        """
name: net
network: {topology: {kind: file, path: net.gml}, exchange: broadcast}
data: {source: {kind: csv, path: data.csv, y: y}, partition: {kind: column, column: owner}}
learning:
  algorithm: {kind: coordinate-descent, mu: 1.0, updates_per_agent: 2}
  loss: squared
  regularizer: {l2: 0.1}
privacy: {mechanism: none}
"""
    )
    assert main(["check", str(tmp_path / "net.yaml"), "--no-pilot"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "network.topology" in line and said in line] == lines[:1]
    assert len(lines) == 1


def test_links_in_a_csv_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a format, a CSV file holds a matrix, and the message names the other format."""
    for name, rows in (
        ("links.csv", "a, b\nb,c,2.5\n"),
        ("bad.csv", "a,b\nc\n"),
        ("links.txt", "a b\nb c 2.5\n"),
    ):
        (tmp_path / name).write_text(rows)
    assert (
        read_edges(tmp_path / "links.txt").names
        == read_edges(tmp_path / "links.csv").names
        == [["a", "b", "c"]]
    )
    plain, table = (
        list(read_edges(tmp_path / f"links.{end}").graph.edges(data=True)) for end in ("txt", "csv")
    )
    assert plain == table
    with pytest.raises(MeaningError, match=r"bad.csv:2: must hold two nodes, separated by a comma, got 'c'"):
        read_edges(tmp_path / "bad.csv")
    (tmp_path / "s.yaml").write_text(scenario("links.csv"))
    assert main(["check", str(tmp_path / "s.yaml")]) == 2
    assert "if lines are links, give format: edge-list" in capsys.readouterr().err


@pytest.mark.parametrize(
    "rows", ["Ash Birch 2\nBirch Elm\nElm Ash\n", "Ash Birch -1\nBirch Elm 1\nElm Ash 1\n"]
)
def test_a_fault_of_a_link_is_one_message(
    rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though links are looked at twice: as numbered in the file, and as the data numbers the agents."""
    (tmp_path / "g.txt").write_text(rows)
    table = "".join(f"{i % 5},{i % 3},{owner}\n" for i in range(8) for owner in ("Elm", "Birch", "Ash"))
    (tmp_path / "t.csv").write_text(f"x,y,owner\n{table}")
    told = yaml.safe_load(scenario("g.txt"))
    told["data"] = {
        "source": {"kind": "csv", "path": "t.csv", "y": "y"},
        "partition": {"kind": "column", "column": "owner"},
    }
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(told))
    assert main(["check", str(tmp_path / "s.yaml")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
