"""Imports run one way, and what is heavy loads late."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import p2psim

PACKAGE = Path(p2psim.__file__).parent

#: What each package may import of p2psim, besides itself and the modules that stand alone.
ALLOWED = {
    "network": set(),
    "learning": {"network.events"},
    "privacy": {"network.events"},
    "data": set(),
    "theory": set(),
    "testing": {"network", "learning", "privacy", "data"},
    "study": {"network", "learning", "privacy", "data", "theory"},
    "account": {"network", "privacy", "study", "report"},
    "report": {
        "theory",
        "study.aside",
        "study.result",
        "study.recordable",
        "study.targets",
        "study.survival",
        "study.intervals",
        "study.comparable",
        "study.comparison",
        "privacy",
        "network.events",
        "network.metrics",
    },
}

#: Modules that everyone may import, since they import none of the packages.
ALONE = {
    "registry",
    "__version__",
    "agent_names",
    "compiled",
    "decimals",
    "errors",
    "figure_names",
    "figures",
    "interrupts",
    "intrinsics",
    "json_lines",
    "metric",
    "moments",
    "options",
    "parts",
    "paths",
    "distributions",
    "randomness",
    "streams",
    "subcommands",
    "printing",
    "text_tables",
}

#: ``Result.plot`` is a convenience: it loads the figures when it is called, and only then.
EXCEPTIONS = {("study/result.py", "report")}

HEAVY = [
    "numpy",
    "scipy",
    "pandas",
    "numba",
    "networkx",
    "seaborn",
    "matplotlib",
    "pyarrow",
    "pydantic",
    "simpy",
    "rich",
]


def imports_of(path: Path) -> list[str]:
    """Modules of p2psim that a file imports, anywhere in it, without the leading ``p2psim.``."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name.removeprefix("p2psim.") for name in found if name.startswith("p2psim.")]


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_run_one_way(package: str) -> None:
    files = sorted((PACKAGE / package).rglob("*.py"))
    assert files
    for path in files:
        for name in imports_of(path):
            top = name.split(".")[0]
            allowed = (
                top == package
                or top in ALONE
                or top in ALLOWED[package]
                or (str(path.relative_to(PACKAGE)), top) in EXCEPTIONS
                or any(name == entry or name.startswith(entry + ".") for entry in ALLOWED[package])
            )
            assert allowed, f"{path.relative_to(PACKAGE)} imports p2psim.{name}"


def test_modules_that_stand_alone_import_no_package() -> None:
    for module in sorted(ALONE - {"__version__"}):
        for name in imports_of(PACKAGE / f"{module}.py"):
            assert name.split(".")[0] in ALONE, f"{module} imports {name}"


def test_no_package_is_left_out_of_the_rule() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(ALLOWED)


@pytest.mark.parametrize("arguments", [["-c", "import p2psim"], ["-m", "p2psim", "--help"]])
def test_heavy_libraries_load_late(arguments: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in run.stderr.splitlines() if "|" in line}
    assert not loaded & set(HEAVY)


def test_reading_a_scenario_compiles_nothing() -> None:
    code = "import sys; from p2psim.study.scenario import Scenario; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
