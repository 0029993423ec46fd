"""The command: exit codes, what it prints, and what it loads."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from p2psim.cli.main import main
from p2psim.network.topologies.random import ErdosRenyi

STUDY = {
    "name": "tiny",
    "replicas": 2,
    "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
    "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": 20}},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 30, "rho": {"h": 0.5}, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-3},
    },
    "privacy": {
        "mechanism": "laplace",
        "epsilon": 10,
        "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
    },
    "record": {"every": 10, "events": True},
    "sweep": {"privacy.epsilon": [1, 100]},
}


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scenario file in the working directory."""
    monkeypatch.chdir(tmp_path)
    with open("tiny.yaml", "w") as stream:
        YAML(typ="safe").dump(STUDY, stream)
    return "tiny.yaml"


def loaded_by(code: str) -> set[str]:
    """Modules that a fresh interpreter has after some code."""
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


HEAVY = {
    "numpy", "scipy", "pandas", "numba", "pyarrow", "networkx", "seaborn", "matplotlib", "pydantic", "rich",
    "ruamel.yaml", "simpy", "distributed", "torch",
}  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        "import p2psim",
        "from p2psim.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from p2psim.cli.main import main\ntry: main(['run', '--nonsense'])\nexcept SystemExit: pass",
    ],
)
def test_heavy_libraries_wait_until_they_are_needed(code: str) -> None:
    assert not HEAVY & loaded_by(code)


def test_checking_loads_no_plots_and_no_tables() -> None:
    unwanted = {"pandas", "seaborn", "matplotlib", "pyarrow", "torch"}
    assert not unwanted & loaded_by("from p2psim import Scenario, TorchModel")


def test_a_run_on_drawn_records_loads_no_library_that_it_does_not_use(scenario: str) -> None:
    unwanted = {"networkx", "rustworkx", "matplotlib", "pandas", "sklearn", "scipy.optimize", "scipy.stats"}
    loaded = loaded_by(
        f"from p2psim.cli.main import main\nmain(['run', {scenario!r}, '--jobs', '1', '--quiet'])"
    )
    assert "p2psim.simulation.simulate" in loaded
    assert not (unwanted | {"pyarrow.dataset"}) & loaded


def test_workers_start_with_what_kernels_need_and_their_parent_does_not() -> None:
    """Their server has loaded it for all of them."""
    script = """
from p2psim.runs import pool, system

told = "import sys; print('numba.np.arraymath' in sys.modules, flush=True)"
if __name__ == "__main__":
    system.warm_up()
    worker = system.worker_context().Process(target=exec, args=(told,))
    worker.start()
    worker.join()
    exec(told)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False"]


def test_names_of_the_package() -> None:
    import p2psim

    assert set(p2psim.__all__) <= set(dir(p2psim))
    assert p2psim.Scenario.__name__ == "Scenario"
    with pytest.raises(AttributeError, match="no attribute 'simulate_everything'"):
        p2psim.simulate_everything  # noqa: B018


def test_run_prints_results_and_where_they_are(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", scenario, "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^epsilon +model +replicas +relative_fitness", printed, re.M)
    assert "results: runs/tiny" in printed
    assert "data_dependent_step" in printed
    assert "\x1b" not in printed
    assert Path("runs/tiny/metrics.parquet").exists()


def test_a_process_that_has_done_its_command_looks_through_nothing_more(scenario: str) -> None:
    """Python would look through all objects once more for what is free; all memory is given back in a moment."""
    script = (
        "import gc, sys; from p2psim.cli.main import main; code = main(); print(code, len(gc.get_objects()))"
    )
    for arguments in (["list"], ["check", "--no-pilot", scenario], ["check", "missing.yaml"]):
        ran = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
        )
        code, objects = map(int, ran.stdout.split()[-2:])
        assert code == (2 if "missing.yaml" in arguments else 0)
        assert objects < 1000


def test_quiet_leaves_nothing_but_warnings(
    scenario: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from p2psim.core import files

    monkeypatch.setattr(files, "is_compiled", lambda: False)
    for quiet in ([], ["--quiet"]):
        assert main(["run", scenario, "--jobs", "1", "--out", f"run{len(quiet)}", *quiet]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert any(line.startswith("warning: ") for line in lines)
        assert all(line.startswith("warning: ") for line in lines) == bool(quiet)
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "warnings stay" in " ".join(capsys.readouterr().out.split())


def test_warnings_name_the_cells_that_they_concern(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["--set", "sweep={learning.algorithm.rho: [1, 9000], privacy.epsilon: [1, 100]}"]
    fixed = ["--set", "data.redraw=never"]
    told = []
    for command in (["check"], ["run", "--jobs", "1"], ["run", "--jobs", "1"]):
        assert main([*command, scenario, *sweep, *fixed]) == 0
        lines = capsys.readouterr().err.splitlines()
        told.append([line for line in lines if line.startswith("warning: ")])
    # Known before the run, told during it, and read again from a folder that is complete: in the same order.
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == len(set(told[0]))
    (steps,) = [line for line in told[0] if "step size outside" in line]
    assert steps.endswith("(cells 2, 3: learning.algorithm.rho = 9000)")
    entries = json.loads(Path("runs/tiny/manifest.json").read_text())["warnings"]
    (entry,) = [entry for entry in entries if "step size outside" in entry["message"]]
    assert (entry["times"], entry["cells"]) == (4, "2-3")


def test_warnings_come_before_the_table_also_when_there_is_nothing_to_do(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = []
    for _ in range(2):
        both = io.StringIO()
        monkeypatch.setattr(sys, "stdout", both)
        monkeypatch.setattr(sys, "stderr", both)
        assert (
            main(["run", scenario, "--jobs", "1", "--set", "data.redraw=never", "--set", "record.every=3"])
            == 0
        )
        printed.append([line for line in both.getvalue().splitlines() if not line.startswith("compiling")])
    assert printed[0] == printed[1]
    assert printed[0][0].startswith("warning: ")
    table = next(i for i, line in enumerate(printed[0]) if line.startswith("tiny: "))
    assert not any(line.startswith("warning: ") for line in printed[0][table:])


def test_run_says_what_the_folder_holds_beside_what_was_asked(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def notes(*arguments: str) -> list[str]:
        assert main(["run", scenario, "--jobs", "1", "--quiet", *arguments]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]

    more = ["--set", "sweep.privacy.epsilon=[1, 100, 10, 20]"]
    assert notes() == []
    assert notes(*more) == []
    fewer = notes("--replicas", "1")
    assert fewer == [
        "note: 2 replicas held, 1 asked for: the table covers all replicas in the folder; choose another --out for "
        "fewer",
        "note: cells 2-3: from an earlier sweep, not from this one",
    ]
    assert notes(*more) == []
    assert notes("--set", "sweep.privacy.epsilon=[20, 100, 10]") == [
        "note: cell 3: from an earlier sweep, not from this one"
    ]
    assert main(["run", scenario, "--jobs", "1", "--replicas", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["notes"]) == 2


def test_help_of_plot_lists_kinds_and_axes(capsys: pytest.CaptureFixture[str]) -> None:
    from p2psim.core.figures import AGAINST, KIND_NAMES

    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert ", ".join(KIND_NAMES) in printed
    assert ", ".join(AGAINST) in printed


def test_the_manifest_has_the_facts_that_check_prints(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", scenario, "--json"]) == 0
    (checked,) = json.loads(capsys.readouterr().out)
    for replicas in ("2", "2", "3"):
        assert main(["run", scenario, "--jobs", "1", "--replicas", replicas]) == 0
        manifest = json.loads(Path("runs/tiny/manifest.json").read_text())
        assert [cell["facts"] for cell in manifest["cells"]] == [cell["facts"] for cell in checked["cells"]]
    assert manifest["cells"][1]["facts"]["owners"] == 3


def test_run_as_json(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", scenario, "--jobs", "1", "--out", "here", "--json", "--quiet"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["folder"] == "here"
    assert [row["privacy.epsilon"] for row in tree["table"]] == [1, 100]


def test_infinite_epsilon_is_strict_json(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--set", "privacy.mechanism=none", "--set", "sweep={}"]
    assert main(["run", scenario, "--jobs", "1", "--json", *arguments]) == 0

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    tree = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert tree["table"][0]["epsilon spent"] == ".inf"
    assert tree["table"][0]["budget"] == ".inf"
    assert "not_private" in tree["table"][0]["flags"]


def test_options_of_run_set_keys(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--replicas",
        "1",
        "--seed",
        "9",
        "--engine",
        "simpy",
        "--set",
        "record.every=5",
        "--check-events",
    ]
    assert main(["run", scenario, "--jobs", "1", *arguments]) == 0
    tree = YAML(typ="safe").load(Path("runs/tiny/scenario.yaml"))
    assert (tree["replicas"], tree["seed"], tree["network"]["engine"], tree["record"]["every"]) == (
        1,
        9,
        "simpy",
        5,
    )


def test_engines_give_the_same_bytes(scenario: str) -> None:
    for engine in ("simpy", "array"):
        assert main(["run", scenario, "--jobs", "1", "--engine", engine, "--out", engine, "--quiet"]) == 0
    for name in ("metrics", "ledger", "events"):
        assert Path(f"simpy/{name}.parquet").read_bytes() == Path(f"array/{name}.parquet").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.yaml"], "none.yaml"),
        (["run", "tiny.yaml", "--set", "learning.algorithm.rho=-1"], "learning.algorithm.rho: must be"),
        (["run", "tiny.yaml", "--set", "data.partition={kind: sizes, sizes: [1, 2]}"], "data.partition"),
        (["run", "tiny.yaml", "--jobs", "0"], "--jobs: must be at least 1, got 0"),
        (["run", "tiny.yaml", "--cell", "0"], "--cell and --replica must be given together"),
        (["run", "tiny.yaml", "--cell", "2", "--replica", "0"], "cell: must be from 0 to 1, got 2"),
        (["run", "tiny.yaml", "--scheduler", "tcp://x:1"], "scheduler is for executor dask"),
        (["run", "tiny.yaml", "--out", "tiny.yaml"], "is a file, not a folder"),
        (["check", "tiny.yaml", "none.yaml"], "none.yaml"),
        (["plot", "nowhere"], "there is no such run folder"),
        (["verify", "."], "not a run folder"),
        (["verify", "tiny.yaml"], "tiny.yaml: is a file; give a run folder, which p2psim run makes"),
        (
            ["run", "three_banks"],
            "three_banks: there is no such file; three_banks is a shipped scenario: give a copy",
        ),
        (
            ["check", "scenarios/three-banks.yaml"],
            "give a copy, by p2psim new three_banks --from three_banks",
        ),
        (["run", "."], ".: is a folder; give a scenario file"),
        (["new", "../x"], "the name of a new scenario must be a name of at most 100 letters"),
        (["list", "xyzzy"], "nothing that can be named contains 'xyzzy'"),
        (["new", "mine", "--from", "three_bank"], "three_banks"),
    ],
)
def test_bad_input_is_told_and_writes_nothing(
    scenario: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["tiny.yaml"]


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run"], ["run", "a", "--jobs", "many"], ["compare"]])
def test_wrong_usage_ends_in_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: p2psim" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    import p2psim

    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"p2psim {p2psim.__version__}\n"


def test_failed_simulation_ends_in_1(
    scenario: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from p2psim.core.errors import SimulationError
    from p2psim.simulation import simulate

    def diverging(*args: object) -> None:
        raise SimulationError("ψ is not finite from step 3 on")

    monkeypatch.setattr(simulate, "simulate", diverging)
    monkeypatch.setattr(simulate, "simulated_at_once", lambda *given: 1)
    assert main(["run", scenario, "--jobs", "1"]) == 1
    message = capsys.readouterr().err
    assert "4 of the simulations failed" in message
    assert "ψ is not finite from step 3 on" in message
    assert "p2psim run runs/tiny/scenario.yaml --out runs/tiny --cell 0 --replica 0" in message


def test_check_shows_the_scenario_its_size_and_its_privacy(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", scenario]) == 0
    printed = capsys.readouterr().out
    assert "horizon: 30" in printed
    assert "2 cells × 2 replicas" in printed
    assert "noise scale" in printed
    assert not Path("runs").exists()
    assert main(["check", scenario, "--json"]) == 0
    (tree,) = json.loads(capsys.readouterr().out)
    assert [len(cell["privacy"]) for cell in tree["cells"]] == [3, 3]
    assert tree["cells"][0]["facts"]["h"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("engines", "said"),
    [
        ("[simpy, array]", "simpy in 1 cell, as network.engine says; array in the others"),
        ("[array, auto]", "array, since all parts of the network have a compiled form"),
        ("[simpy]", "simpy, as network.engine says"),
    ],
)
def test_check_says_which_cells_take_which_engine(
    scenario: str, capsys: pytest.CaptureFixture[str], engines: str, said: str
) -> None:
    keys = ["--set", "sweep={}", "--set", f"sweep.network.engine={engines}"]
    assert main(["check", scenario, "--no-pilot", *keys]) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"engine: {said}"


def test_check_shows_facts_first_and_few_agents(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    many = ["--set", "network.topology.agents=30", "--replicas", "1"]
    assert main(["check", scenario, "--set", "sweep={}", *many]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tiny.yaml: 1 cell × 1 replica, about ")
    assert lines[1].startswith("engine: ")
    assert lines[2].startswith("time: ")
    assert lines[3:5] == ["", "what is known of each cell"]
    assert any(line.startswith("  h: ") for line in lines)
    agents = lines.index("privacy of each agent")
    assert agents < lines.index("# A resolved p2psim scenario: every default is explicit.")
    assert not any("more" in line for line in lines[:-1])
    assert main(["check", scenario, *many]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tiny.yaml: 2 cells × 1 replica, about ")
    assert "… and up to 10 more agents in each cell; --json has all" in lines
    assert sum(line.split()[:1] == ["0"] for line in lines) == 1 + 20


def test_check_says_what_is_swept_once_in_a_table_of_several_blocks(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    swept = "sweep={privacy.epsilon: [11, 12], learning.algorithm.form: [printed, corrected]}"
    assert main(["check", scenario, "--no-pilot", "--set", swept]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("what is known of each cell") + 1
    table = lines[
        first : next(
            i for i, line in enumerate(lines) if i > first and line[:3].lstrip(" ") and line[0] == " "
        )
    ]
    heads = [line for line in table if line.startswith("cell")]
    assert [line.count("epsilon") for line in heads] == [1] + [0] * (len(heads) - 1)
    assert sum("printed" in line for line in table) == 2
    assert sum(line.split()[:1] == ["0"] for line in table) == len(heads)


def test_check_shows_cells_with_and_without_privacy_in_one_table(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for budgets in ("[1, .inf]", "[.inf, 1]"):
        assert main(["check", scenario, "--set", f"sweep={{privacy.epsilon: {budgets}}}"]) == 0
        lines = capsys.readouterr().out.splitlines()
        first = lines.index("privacy of each agent") + 1
        table = lines[first : lines.index("", first)]
        (head,) = (line for line in table if line.endswith("ε basic"))
        # What is spent is told where something is protected; elsewhere the column is empty.
        ends = [line[head.index("ε basic") :].strip() for line in table[table.index(head) + 1 :]]
        assert sorted(ends) == ["", "", "", "1", "1", "1"]


def test_check_names_labelled_agents(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = "a,b,clinic\n" + "\n".join(f"{i},{i * i % 7},{'north' if i % 2 else 'south'}" for i in range(40))
    Path("stays.csv").write_text(table)
    given = [
        "data.source={kind: csv, path: stays.csv, y: b}",
        "data.partition={kind: column, column: clinic}",
    ]
    sets = [word for one in [*given, "network.topology=star", "sweep={}"] for word in ("--set", one)]
    assert main(["check", scenario, *sets]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"agent +label.*\n +0 +0 +(north|south)", printed)
    assert main(["check", scenario, *sets, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)[0]["cells"][0]["labels"]) == {"north", "south"}


def test_a_run_folder_of_another_spelling_is_named(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", scenario, "--jobs", "1", "--quiet", "--out", "runs/three-banks"]) == 0
    assert main(["plot", "runs/three_banks"]) == 2
    assert (
        "runs/three_banks: there is no such run folder; did you mean runs/three-banks?"
        in capsys.readouterr().err
    )


def test_shipped_scenarios_are_found_from_a_checkout(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("scenarios").mkdir()
    Path("scenarios/three_banks.yaml").write_text("")
    assert main(["run", "three_banks"]) == 2
    assert "give scenarios/three_banks.yaml" in capsys.readouterr().err


def test_sources_are_listed_in_lines_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("lending: 10,000 loans") for line in lines)
    assert max(map(len, lines)) <= 120
    assert main(["data", "list", "--json"]) == 0
    sources = json.loads(capsys.readouterr().out)
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == [
        one["source"] for one in sources
    ]
    assert sum("licence: " in line for line in lines) == len(sources)


def test_check_reports_every_file(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        Path(f"wrong{number}.yaml").write_text(
            Path(scenario).read_text().replace("horizon: 30", "horizon: -1")
        )
    assert main(["check", "wrong1.yaml", scenario, "wrong2.yaml"]) == 2
    captured = capsys.readouterr()
    assert "wrong1.yaml:" in captured.err
    assert "wrong2.yaml:" in captured.err
    assert "2 cells × 2 replicas" in captured.out


def test_verify_accepts_what_was_computed_and_finds_what_was_changed(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    assert main(["run", scenario, "--jobs", "1", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["verify", "runs/tiny", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert len(tree["checked"]) == 4
    assert tree["largest"] < 1e-12
    metrics = Path("runs/tiny/metrics.parquet")
    table = pd.read_parquet(metrics)
    table.loc[5, "value"] *= 1 + 1e-6
    table.to_parquet(metrics)
    assert main(["verify", "runs/tiny"]) == 1
    assert "4 simulations recomputed; largest relative difference" in capsys.readouterr().out


def test_verify_finds_an_impossible_event(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert main(["run", scenario, "--jobs", "1", "--quiet"]) == 0
    events = Path("runs/tiny/events.parquet")
    whole = pq.read_table(events)
    table = whole.to_pandas()
    table.loc[3, "time"] = -1.0
    pq.write_table(pa.Table.from_pandas(table, whole.schema), events)
    assert main(["verify", "runs/tiny"]) == 1
    assert "time goes back" in capsys.readouterr().out


def test_verify_needs_events(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", scenario, "--jobs", "1", "--quiet", "--set", "record.events=false"]) == 0
    assert main(["verify", "runs/tiny"]) == 2
    assert "set record.events: true" in capsys.readouterr().err


def test_new_scenario_starts_from_a_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine"]) == 0
    assert capsys.readouterr().out == "mine.yaml\n"
    assert "name: mine" in Path("mine.yaml").read_text()


def test_of_a_kind_its_keys_are_listed(capsys):
    """All of them, each with what it takes; of a word that is no kind, none."""
    assert main(["list", "erdos_renyi"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "keys of erdos_renyi under network.topology" in shown
    for key in ErdosRenyi.model_fields.keys() - {"kind"}:
        assert f" {key}: " in shown
    assert main(["list", "latency"]) == 0
    assert "keys of" not in capsys.readouterr().out


def test_list_and_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert "async-star" in printed
    assert "three_banks" in printed
    assert "more rows" not in printed
    assert main(["list", "laplace", "--json"]) == 0
    assert any(entry["name"] == "laplace" for entry in json.loads(capsys.readouterr().out))
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["network"]


def test_closed_pipe_is_no_disaster(scenario: str) -> None:
    command = f"{sys.executable} -m p2psim schema | head -n 1"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert ran.stdout == "{\n"
    assert ran.stderr == ""
