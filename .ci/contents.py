"""Whether a wheel and an sdist hold what they must, and nothing that lies about: ``contents.py FOLDER``."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
folder = Path(sys.argv[1])
(wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
if not (ROOT / ".git").exists():
    sys.exit(print("not a clone: what the wheel and the sdist hold was not compared"))
# What git ignores is cached or built.
tracked = set(subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines())


def compare(what: str, present: set[str], expected: set[str]) -> None:
    """End with the differences, if there are any."""
    if present != expected:
        sys.exit(f"{what}: missing {sorted(expected - present)}, too much {sorted(present - expected)}")


package = {name for name in tracked if name.startswith("p2psim/")}
scenarios = {name for name in tracked if name.startswith("scenarios/")}
names = set(zipfile.ZipFile(wheel).namelist())
metadata = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
compare(wheel.name, names - metadata, package | {f"p2psim/_{name}" for name in scenarios})
assert {"p2psim/py.typed", "p2psim/__init__.pyi", "p2psim/report/page/assets/uPlot.LICENSE"} <= names
assert any(name.endswith("/licenses/LICENSE") for name in metadata), metadata

folders = ("p2psim/", "scenarios/", "tests/", "docs/", "benchmarks/", "notebooks/", ".ci/")
files = {path for path in tracked if path.startswith(folders) or "/" not in path}
with tarfile.open(sdist) as archive:
    present = {str(PurePosixPath(*PurePosixPath(one.name).parts[1:])) for one in archive if one.isfile()}
compare(sdist.name, present - {"PKG-INFO"}, files)
print(f"{wheel.name}: {len(names)} files; {sdist.name}: {len(present)} files")
