"""Pages of notebooks and the notebooks to download are those of the sources; CI compares what they print."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "notebooks"
NAMES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py") if path.stem != "run_all")

jupytext = pytest.importorskip("jupytext", reason='without jupytext: pip install "p2psim[notebooks]"')
nbformat = pytest.importorskip("nbformat", reason='without nbformat: pip install "p2psim[notebooks]"')
pytest.importorskip("nbconvert", reason='without nbconvert: pip install "p2psim[notebooks]"')


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location("run_all", ROOT / "notebooks" / "run_all.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_page_and_download_are_of_the_source(name: str, tool: ModuleType) -> None:
    source = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    download = nbformat.read(PAGES / f"{name}.ipynb", as_version=4)
    nbformat.validate(download)
    again = "run python notebooks/run_all.py --pages " + name
    assert [(cell.cell_type, cell.source) for cell in download.cells] == [
        (cell.cell_type, cell.source) for cell in source.cells
    ], again
    assert all(cell.execution_count for cell in download.cells if cell.cell_type == "code")
    files = tool.page(name, download)
    assert any(path.endswith(".png") for path in files)
    for path, content in files.items():
        assert (PAGES / path).read_bytes() == content, again
    assert {f"{name}_files/{path.name}" for path in (PAGES / f"{name}_files").iterdir()} < set(files)


def test_nothing_of_this_machine_is_on_a_page() -> None:
    for page in PAGES.glob("*.md"):
        assert (
            re.findall(r"/(?:tmp|home|root|work)/\S*|0x[0-9a-f]{6,}", page.read_text(encoding="utf-8")) == []
        )


def test_other_numbers_and_words_are_found(tool: ModuleType) -> None:
    assert tool.differences("a 1.000 [0.5, 2]\nb", "a  1.001 [0.5, 2]\nb") == []
    assert len(tool.differences("a 1.0\nb", "a 1.1\nc")) == 2
    assert len(tool.differences("a", "a\nb")) == 1
