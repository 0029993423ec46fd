"""Which modules scenarios may name parts of."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2psim.core import registry
from p2psim.core.errors import InputError
from p2psim.scenario.model import Scenario


@pytest.fixture(autouse=True)
def nothing_let_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A process into which nothing has been let in, with a package of one's own on its path."""
    monkeypatch.setattr(registry, "_LOADED", {})
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


def test_installed_packages_are_looked_through_once_for_all_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their lists of files are long: a tenth of a second, for each module of each run, it would be."""
    from importlib import metadata

    whole, looks = metadata.packages_distributions, []
    monkeypatch.setattr(metadata, "packages_distributions", lambda: looks.append(1) or whole())
    declare(tmp_path, "declared")
    registry.load_installed()
    registry.load_parts("mine")
    for _ in range(3):
        origins = registry.origins([])
        assert [origin["package"] for origin in origins.values()] == ["declared-parts", None]
    assert registry.version_of("declared")[0] == "1.2"
    assert len(looks) == 1
