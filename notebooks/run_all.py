"""Executes every notebook of this folder, and fails on the first error.

Notebooks are kept as Python files in jupytext's percent format, without results. With a folder as argument, executed
notebooks are written there.
"""

import sys
import time
from pathlib import Path

import jupytext
import nbclient
import nbformat

FOLDER = Path(__file__).resolve().parent


def execute(path: Path, out: Path | None) -> float:
    """Execute one notebook, in the folder of notebooks; returns the seconds that it took."""
    start = time.perf_counter()
    notebook = jupytext.read(path)
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
        extra_arguments=["--log-level=ERROR"],
    ).execute()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, out / f"{path.stem}.ipynb")
    return time.perf_counter() - start


def main() -> int:
    """Execute all of them."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    for path in sorted(FOLDER.glob("*.py")):
        if path == Path(__file__).resolve():
            continue
        try:
            seconds = execute(path, out)
        except nbclient.exceptions.CellExecutionError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return 1
        print(f"{path.name}: executed in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
