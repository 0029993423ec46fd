"""A file that a scenario names and that cannot be read is one fault with its place, whichever section names it."""

from pathlib import Path

import pytest

from p2psim.cli.main import main

STUDY = """\
name: files
network: {topology: TOPOLOGY, exchange: EXCHANGE, availability: AVAILABILITY}
data: {source: SOURCE}
learning: {algorithm: ALGORITHM, loss: squared, regularizer: {l2: 0.1}}
"""
STAR = {
    "TOPOLOGY": "star",
    "EXCHANGE": "request",
    "AVAILABILITY": "always",
    "SOURCE": "{kind: linear-regression, agents: 2, dimension: 2, points: 20}",
    "ALGORITHM": "{kind: async-star, horizon: 20, rho: 1, theta_max: 3}",
}
GRAPH = STAR | {
    "EXCHANGE": "broadcast",
    "ALGORITHM": "{kind: coordinate-descent, mu: 1, updates_per_agent: 5}",
}
#: Which section names the file, with the key.
NAMING = {
    "availability": (STAR, "AVAILABILITY", "{kind: scripted, path: 'FILE'}", "network.availability.path"),
    "table": (
        STAR,
        "SOURCE",
        "{kind: csv, path: 'FILE', y: y}, partition: {kind: equal, agents: 2}",
        "data.source.path",
    ),
    **{
        form: (GRAPH, "TOPOLOGY", f"{{kind: file, path: 'FILE', format: {form}}}", "network.topology")
        for form in ("gml", "graphml", "edge-list", "adjacency-csv")
    },
}


def said(naming: str, named: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    words, part, wording, _ = NAMING[naming]
    text = STUDY
    for word, meaning in (words | {part: wording.replace("FILE", named)}).items():
        text = text.replace(word, meaning)
    (folder / "study.yaml").write_text(text)
    assert main(["check", str(folder / "study.yaml"), "--no-pilot"]) == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("naming", NAMING)
@pytest.mark.parametrize(
    "named", ["~nobody-of-this-name/file", "missing", ".", "/proc/self/mem", "/dev/zero"]
)
def test_one_fault_with_its_place(
    naming: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if named.startswith("/proc") and not Path(named).exists():
        pytest.skip("no file here that is there and cannot be read")
    (line,) = said(naming, named, tmp_path, capsys)
    assert f"study.yaml:{3 if naming == 'table' else 2}:" in line
    assert NAMING[naming][3] in line


@pytest.mark.parametrize("end", ["9" * 400, "1e400"])
def test_a_time_that_is_too_large_is_no_time(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spans.csv").write_text(f"agent,begin,end\n0,0,{end}\n")
    (line,) = said("availability", "spans.csv", tmp_path, capsys)
    assert "spans.csv:2: " in line
