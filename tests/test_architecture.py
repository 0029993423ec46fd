"""Imports run one way, and what is heavy loads late."""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import p2psim

PACKAGE = Path(p2psim.__file__).parent

#: Rooms from the ground up: each may import those on the floors below it, and nothing else of p2psim.
FLOORS = (
    ("core",),
    ("data", "network", "privacy"),
    ("learning",),
    ("theory",),
    ("scenario",),
    ("simulation",),
    ("runs",),
    ("analysis", "audit"),
    ("report",),
    ("testing",),
    ("cli",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

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


def module_of(path: Path) -> str:
    names = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(path: Path) -> Iterator[str]:
    """Modules of p2psim that a file imports, anywhere in it, annotations included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "p2psim")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "p2psim":
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module


def room_of(module: str) -> str:
    return module.split(".")[1]


def test_each_room_stands_on_a_floor() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == set(FLOOR)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("room", FLOOR)
def test_imports_run_down(room: str) -> None:
    for module, path in MODULES.items():
        if module.startswith(f"p2psim.{room}"):
            for name in imports_of(path):
                assert name != "p2psim", f"{module} imports the face of the package, which imports everything"
                other = room_of(name)
                assert other == room or FLOOR[other] < FLOOR[room], f"{module} imports {name}"


def test_no_circle() -> None:
    """Annotations included: what two modules share lies below both."""
    graph = {
        module: {name for name in imports_of(path) if name != module}
        for module, path in MODULES.items()
        if module != "p2psim"
    }
    graphlib.TopologicalSorter(graph).prepare()


def test_files_are_neither_long_nor_many() -> None:
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert not {module: length for module, length in lengths.items() if length > 400}
    assert len(MODULES) <= 350


def names_of_modules(path: Path) -> Iterator[str]:
    """What a file imports from modules, reads of them or replaces in them; and all its texts."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    yield from imported.values()
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                yield f"{imported.get(module)}.{name}"
            case ast.Call(
                func=ast.Attribute(attr="setattr"),
                args=[ast.Name(id=module), ast.Constant(value=name), *_],
            ):
                yield f"{imported.get(module)}.{name}"
            case ast.Constant(value=str(text)):
                yield text


def test_tests_use_no_private_name_of_a_module() -> None:
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for name in names_of_modules(path):
            module, _, last = name.rpartition(".")
            is_private = last.startswith("_") and not last.endswith("__")
            assert not (module in MODULES and is_private), f"{path.name} uses {name}"


@pytest.mark.parametrize("arguments", [["-c", "import p2psim"], ["-m", "p2psim", "--help"]])
def test_heavy_libraries_load_late(arguments: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in run.stderr.splitlines() if "|" in line}
    assert not loaded & set(HEAVY)


def test_reading_a_scenario_compiles_nothing() -> None:
    code = "import sys; from p2psim.scenario.model import Scenario; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
