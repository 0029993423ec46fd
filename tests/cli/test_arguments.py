"""Arguments of the Python functions and of the command are refused at the door, with their names."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import small_study as small
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError

STAR = {
    "name": "star",
    "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
    "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": 20}},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 20, "rho": {"h": 0.5}, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-3},
    },
}
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**70),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers(-1, 3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.just(object()),
    st.just(np.float64(1.5)),
    st.just({1, 2}),
    st.just(print),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jobs", 1.5),
        ("jobs", 0),
        ("jobs", True),
        ("only", 5),
        ("only", (0,)),
        ("only", (0.5, 1)),
        ("out", 5),
        ("out", "a\0"),
        ("out", "\udcff"),
        ("progress", 3),
        ("executor", None),
        ("scheduler", 3),
        ("overwrite", "yes"),
        ("check_events", 1),
        ("confirm_cells", "yes"),
        ("tell", 5),
    ],
)
def test_arguments_of_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = p2psim.Scenario.from_dict(STAR)
    with pytest.raises(InputError, match=f"^{name}.*got "):
        p2psim.run(scenario, **{"out": "here", "progress": False} | {name: value})
    assert not any(tmp_path.iterdir())


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(
        ["scenario", "jobs", "only", "out", "progress", "executor", "scheduler", "overwrite", "tell"]
    ),
    value=JUNK,
)
def test_any_argument_of_run_is_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: object
) -> None:
    # A file where the folder would be: nothing is run whatever is accepted.
    file = tmp_path_factory.getbasetemp() / "file"
    file.write_text("")
    if name == "out" and isinstance(value, str):
        return
    given = {"scenario": p2psim.Scenario.from_dict(STAR), "out": file, "progress": False} | {name: value}
    if given["out"] is None:
        return
    with pytest.raises(InputError):
        p2psim.run(**given)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    """A small run."""
    return p2psim.run(
        p2psim.Scenario.from_dict(STAR), tmp_path_factory.mktemp("made") / "run", progress=False
    )


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(
        ["kind", "metric", "against", "folder", "target", "facet", "agent", "quantile", "log", "zz"]
    ),
    value=JUNK.filter(lambda value: value is not None and not isinstance(value, str | bool)),
)
def test_arguments_of_other_functions(result: p2psim.Result, name: str, value: object) -> None:
    if name != "target" or not isinstance(value, int | float):
        with pytest.raises(InputError):
            result.plot(**{"kind": "nothing"} | {name: value})
    for function in (p2psim.Result.load, p2psim.Scenario.load):
        with pytest.raises(InputError):
            function(value)  # type: ignore[operator]
    with pytest.raises(InputError):
        p2psim.Scenario.from_dict(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("kept", [{}, {"events": True}])
def test_a_run_may_record_no_metric_where_it_keeps_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kept: dict[str, bool]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("star.yaml").write_text(repr(STAR | {"record": {"metrics": []}}).replace("'", '"'))
    assert main(["run", "star.yaml", "--jobs", "1", *(f"--set=record.{key}=true" for key in kept)]) == (
        0 if kept else 2
    )
    assert ("record.metrics: is empty" in capsys.readouterr().err) == (not kept)
    assert Path("runs").exists() == bool(kept)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--jobs", "0"],
        ["run", "--jobs", "1.5"],
        ["run", "--jobs", "9" * 10_000],
        ["run", "--cell", "-1", "--replica", "0"],
        ["run", "--out", "\udcff"],
        ["run", "--replicas", "0"],
        ["check", "--jobs", "0"],
        ["plot", "--agent", "-1"],
        ["audit", "--samples", "0"],
        ["forecast", "--calibrate", "-1"],
    ],
)
def test_options_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main([arguments[0], "star.yaml", *arguments[1:]])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr().err
    assert code == 2
    assert "Traceback" not in said
    assert len(said) < 2000
    assert not any(tmp_path.iterdir())


COMMANDS = [
    "run",
    "check",
    "plot",
    "verify",
    "audit",
    "forecast",
    "compare",
    "account releases",
    "account run",
]
COMMANDS += ["account calibrate", "account network", "data list", "list", "schema"]
WORDS = """
--set --replicas --seed --engine --jobs --executor --scheduler --cell --replica --progress --kind --metric --out
--against --agent --quantile --target --reference --samples --gamma --calibrate --best --confidence --losses --delta
--epsilon --count --sigma --steps --topology --accountant --json --overwrite --no-pilot --nonsense
star.yaml missing.yaml . x=1 seed=1 seed 0 -1 1.5 nan inf 1e999 true { [1] a=b=c -- - = ~nobody/x é
"""
STRANGE = ["", "9" * 5000, "x\udcff", 'name="\\UFFFFFFFF"', "\u200b", "network.topology.agents=["]
TOKENS = st.sampled_from([*WORDS.split(), *STRANGE])


@settings(max_examples=60, deadline=None)
@given(command=st.sampled_from(COMMANDS), tokens=st.lists(TOKENS, max_size=5))
@example(command="plot", tokens=["9" * 5000])
@example(command="verify", tokens=["9" * 5000])
@example(command="account run", tokens=["9" * 5000])
@example(command="compare", tokens=["9" * 5000, "9" * 5000])
def test_any_arguments_end_with_a_message(
    tmp_path_factory: pytest.TempPathFactory, command: str, tokens: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    said = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        try:
            code = main([*command.split(), *tokens])
        except SystemExit as end:
            code = end.code
    assert code in (0, 2)
    assert (code == 2) == bool(said.getvalue())
    assert "Traceback" not in said.getvalue()
    assert not any(folder.iterdir())


GUARD = 'if __name__ == "__main__":'


@pytest.mark.parametrize("body", ["run()", "for _ in range(1):\n    run()", "x = [run() for _ in range(1)]"])
@pytest.mark.parametrize("guarded", [False, True])
def test_a_script_without_a_guard_is_told_so_first(tmp_path: Path, body: str, guarded: bool) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines()) if guarded else body
    script = (
        f"import p2psim\n\ndef run():\n    scenario = p2psim.Scenario.from_dict({STAR | {'replicas': 2}!r})\n"
        f"    p2psim.run(scenario, 'here', jobs=2, progress=False)\n\n{GUARD if guarded else ''}\n{lines}\n"
    )
    (tmp_path / "script.py").write_text(script)
    if guarded and body != "run()":
        return  # once is enough: it starts processes
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode == 0) == guarded
    assert (GUARD in ran.stderr) != guarded
    assert ran.stderr.count("Traceback") == (not guarded)
    assert (tmp_path / "here").exists() == guarded


@pytest.mark.parametrize(
    "command", ["run {s} --out {p}", "verify {p}", "plot {p}", "compare {p} {p}", "check {p}"]
)
def test_the_home_folder_of_nobody_is_refused_and_ours_is_meant(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In quotes, ~ comes to us as it stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with open("s.yaml", "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=1), stream)
    before = sorted(tmp_path.rglob("*"))
    assert main(command.format(s="s.yaml", p="~nobodyxx/a").split()) == 2
    assert (
        "~nobodyxx/a: the home folder of this user is not known" in capsys.readouterr().err
        or command == "check {p}"
    )
    assert sorted(tmp_path.rglob("*")) == before
    if "--out" in command:
        assert main(command.format(s="s.yaml", p="~/a").split()) == 0
        assert (tmp_path / "home" / "a" / "manifest.json").is_file()
