"""Which modules scenarios may name parts of."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2psim.core import part_types, registry
from p2psim.core.errors import InputError
from p2psim.scenario.model import Scenario


@pytest.fixture(autouse=True)
def nothing_let_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A process into which nothing has been let in, with a package of one's own on its path."""
    monkeypatch.setattr(registry, "LOADED", {})
    registry.failures.cache_clear()
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("class Own: pass\n")
    (tmp_path / "broken.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("mine", "broken", "declared")]:
        del sys.modules[name]
    registry.failures.cache_clear()


def declare(folder: Path, value: str) -> None:
    """Install a package, declared-parts 1.2, that declares a module."""
    (folder / "declared.py").write_text("class Part: pass\n")
    information = folder / "declared_parts-1.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: declared-parts\nVersion: 1.2\n")
    (information / "entry_points.txt").write_text(f"[p2psim.parts]\nany = {value}\n")
    (information / "top_level.txt").write_text("declared\n")
    (information / "RECORD").write_text("declared.py,,\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "the module nosuch cannot be imported .ModuleNotFoundError: No module named 'nosuch'.$"),
        ("broken", "the module broken cannot be imported .SystemExit: 3."),
        ("../mine", "'../mine' is not the name of a module"),
        ("mine/inner.py", "is not the name of a module"),
        ("", "is not the name of a module"),
        (".mine", "is not the name of a module"),
    ],
)
def test_a_module_that_cannot_be_imported(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        registry.load_parts(name)
    assert registry.loaded() == ()


def test_a_file_in_the_current_folder_is_named_in_the_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "lying.py").write_text("raise AssertionError\n")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match=r"lying\.py is in the current folder, .* only with PYTHONPATH=\."):
        registry.load_parts("lying")


@pytest.mark.parametrize("value", ["declared", "declared:Part"])
def test_an_installed_package_lets_in_what_it_declares(tmp_path: Path, value: str) -> None:
    declare(tmp_path, value)
    registry.load_installed()
    origin = registry.origins(["declared:Part"])["declared"]
    assert (origin["package"], origin["version"]) == ("declared-parts", "1.2")
    assert origin["used"] == ["declared:Part"]


def test_an_installed_package_that_is_broken_hinders_nobody_else(tmp_path: Path) -> None:
    declare(tmp_path, "broken")
    registry.load_parts("mine")
    assert registry.loaded() == ("mine",)
    with pytest.raises(InputError) as error:
        Scenario.parse("network: {topology: {kind: unheard-of}}")
    assert "the module broken cannot be imported" in str(error.value)


def test_the_manifest_is_told_which_file_a_module_was(tmp_path: Path) -> None:
    from hashlib import sha256

    registry.load_parts("mine")
    digest = sha256((tmp_path / "mine" / "__init__.py").read_bytes()).hexdigest()
    assert registry.origins(["mine:Own", "other:Thing", "mine:Own"]) == {
        "mine": {"package": None, "version": None, "sha256": digest, "used": ["mine:Own"]}
    }


def test_installed_packages_are_looked_through_once_for_each_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their lists of files are long."""
    from importlib import metadata

    declare(tmp_path, "declared")
    registry.load_installed()
    registry.load_parts("mine")
    whole, looks = metadata.distributions, []
    monkeypatch.setattr(metadata, "distributions", lambda: looks.append(1) or whole())
    for _ in range(3):
        origins = registry.origins([])
        assert [origin["package"] for origin in origins.values()] == ["declared-parts", None]
    assert registry.version_of("declared")[0] == "1.2"
    assert len(looks) == 2


@pytest.mark.parametrize("top_level", ["declared\n", "", None], ids=["listed", "empty list", "no list"])
def test_the_package_of_a_module_is_the_one_that_installs_it(tmp_path: Path, top_level: str | None) -> None:
    """As the standard library finds it, which looks at every file of every package."""
    from importlib import metadata

    declare(tmp_path, "declared")
    listed = tmp_path / "declared_parts-1.2.dist-info" / "top_level.txt"
    if top_level is None:
        listed.unlink()
    else:
        listed.write_text(top_level)
    names = ["declared", "numpy", "simpy", "dateutil", "typing_extensions", "mine"]
    registry.load_parts(*names)
    known = metadata.packages_distributions()
    assert {name: origin["package"] for name, origin in registry.origins([]).items()} == {
        name: known.get(name, [None])[0] for name in names
    }
    assert known["declared"] == ["declared-parts"]


@pytest.mark.parametrize("kind", registry.KINDS)
def test_parts_of_p2psim_are_what_the_lists_of_its_packages_say(kind: str) -> None:
    known = registry.parts(kind)
    for name, part in registry.parts(kind).items():
        assert registry.kind_of(part) == kind
        assert registry.name_of(part) == name
        assert registry.register(part) is part or kind == "accountant"
        words = registry.words_of(part) or (name,)
        assert words == tuple(word for word, of in known.names.items() if of == name)
        if hasattr(part, "model_fields"):
            assert all(part_types.AnyOf(kind).named(word) is part for word in words)


def test_a_scenario_imports_the_parts_that_it_names_and_no_others() -> None:
    script = """
import sys
import p2psim.scenario.model as model
of_parts = ("topologies", "exchanges", "sources", "features", "availability")
def modules():
    return {name for name in sys.modules if name.startswith("p2psim.") and name.split(".")[-2] in of_parts}
before = modules()
keys = {"topology": {"kind": "erdos-renyi", "agents": 5, "probability": 1}, "exchange": "gossip"}
model.Scenario(
    name="few",
    network=keys,
    data={"source": {"kind": "linear-regression", "dimension": 2, "points": 9}},
    learning={
        "algorithm": {"kind": "coordinate-descent", "mu": 0.1, "commits": 9},
        "loss": "squared",
        "regularizer": {"l2": 0.1},
    },
)
print(*sorted(name.partition("p2psim.")[2] for name in modules() - before))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    wanted = ["data.sources.linear", "network.exchanges.gossip", "network.topologies.random"]
    assert ran.stdout.split() == wanted


def test_a_name_of_a_part_that_nobody_needed_yet_is_refused_without_importing_it() -> None:
    script = """
import sys
from typing import Literal
import p2psim
for words in (Literal["knn"], Literal["mine", "barabasi-albert"]):
    class Own(p2psim.Topology):
        kind: words = words.__args__[0]
        def build(self, *arguments): ...
    try:
        p2psim.register(Own)
    except p2psim.core.errors.InputError as error:
        print(error)
assert not {"p2psim.network.topologies.points", "p2psim.network.topologies.random"} & sys.modules.keys()
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    message = (
        "the topology {!r} of __main__ cannot be registered: p2psim has one of this name; choose another name"
    )
    assert ran.stdout.splitlines() == [message.format(name) for name in ("knn", "mine")]
