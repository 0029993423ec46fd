"""What is released names one version, and the recipe of the container takes files that are there."""

import re
from pathlib import Path

import p2psim

ROOT = Path(__file__).parents[1]


def test_one_version_everywhere() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = re.search(r"^## \[([^]]+)\] - (\S+)$", changes, re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert latest is not None
    assert p2psim.__version__ == latest[1]
    assert f"\nversion: {latest[1]}\n" in citation
    assert f'\ndate-released: "{latest[2]}"\n' in citation
    assert f"dist/p2psim-{latest[1]}-py3" in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def test_container_is_built_of_what_is_there_and_does_not_run_as_root() -> None:
    recipe = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    let_in = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    copied = [
        line.split()[1:-1] for line in recipe.splitlines() if line.startswith("COPY ") and "--" not in line
    ]
    sources = {source for line in copied for source in line}
    assert sources == let_in
    assert all((ROOT / source).exists() for source in sources)
    # What the package is built of, as pyproject.toml names it.
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:readme = |file = |packages = \[)"([\w.]+)"', project)) <= sources
    users = re.findall(r"^USER (\S+)$", recipe, re.MULTILINE)
    assert users == ["p2psim"]
    assert recipe.index("USER ") < recipe.index('ENTRYPOINT ["p2psim"]')
