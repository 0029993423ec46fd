"""Executes the notebooks of this folder; fails on the first error, or if other text comes out than stands on its page.

Notebooks are kept as Python files in jupytext's percent format, without results. ``run_all.py --pages`` writes each
with its results to docs/notebooks: NAME.ipynb, to download, and the same as a page of the site, NAME.md, with its
figures. Names after the options choose notebooks.
"""

import argparse
import re
import shutil
import sys
import time
from pathlib import Path

import jupytext
import nbclient
import nbconvert
import nbformat
import numpy as np

FOLDER = Path(__file__).resolve().parent
PAGES = FOLDER.parent / "docs" / "notebooks"
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


def names() -> list[str]:
    """All notebooks."""
    return [path.stem for path in sorted(FOLDER.glob("*.py")) if path != Path(__file__).resolve()]


def execute(name: str) -> nbformat.NotebookNode:
    """Execute one notebook, in the folder of notebooks."""
    notebook = jupytext.read(FOLDER / f"{name}.py")
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
        extra_arguments=["--log-level=ERROR"],
        coalesce_streams=True,  # how often what is printed is flushed depends on the machine
    ).execute()
    # What differs from run to run: times, identities, and what was installed.
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell["id"], cell["metadata"] = str(number), {}
        for output in cell.get("outputs", ()):
            if html := output.get("data", {}).get("text/html"):
                # A table is one like others: without pandas' styles.
                html = re.sub(r"<style scoped>.*?</style>\s*", "", html, flags=re.DOTALL)
                output["data"]["text/html"] = re.sub(r"<(table|tr)[^>]*>", r"<\1>", html)
    return notebook


def page(name: str, notebook: nbformat.NotebookNode) -> dict[str, bytes]:
    """Files of a page by their paths: Markdown, and its figures."""
    start = {"unique_key": name, "output_files_dir": f"{name}_files"}
    text, resources = nbconvert.MarkdownExporter().from_notebook_node(notebook, resources=start)
    title, rest = text.replace("![png](", "![Figure of the cell above](").strip().split("\n", 1)
    link = f"[Download the notebook]({name}.ipynb). Jupyter, GitHub and Colab show it; Colab must install p2psim first."
    return {f"{name}.md": f"{title}\n\n{link}\n{rest}\n".encode(), **resources["outputs"]}


def write(name: str, notebook: nbformat.NotebookNode) -> None:
    """Write a notebook with its results, and its page."""
    shutil.rmtree(PAGES / f"{name}_files", ignore_errors=True)
    (PAGES / f"{name}_files").mkdir(parents=True)
    nbformat.write(notebook, PAGES / f"{name}.ipynb")
    for path, content in page(name, notebook).items():
        (PAGES / path).write_bytes(content)


def printed(notebook: nbformat.NotebookNode) -> str:
    """All text that its cells print."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def differences(now: str, before: str) -> list[str]:
    """Pairs of lines that differ in words, or in numbers by more than linear algebra on another processor explains."""

    def alike(one: str, other: str) -> bool:
        numbers = [np.array(NUMBER.findall(line), dtype=float) for line in (one, other)]
        words = [NUMBER.sub("", line).split() for line in (one, other)]
        same = len(numbers[0]) == len(numbers[1]) and words[0] == words[1]
        return bool(same and np.allclose(*numbers, rtol=0.02, atol=0.002))

    lines = now.splitlines(), before.splitlines()
    if len(lines[0]) != len(lines[1]):
        return [f"{len(lines[0])} lines now, {len(lines[1])} on the page"]
    return [
        f"{one}\n  on the page: {other}" for one, other in zip(*lines, strict=True) if not alike(one, other)
    ]


def main() -> int:
    """Execute all of them, or those that are named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", action="store_true")
    options.add_argument("names", nargs="*", default=names())
    given = options.parse_args()
    for name in given.names:
        start = time.perf_counter()
        try:
            notebook = execute(name)
        except nbclient.exceptions.CellExecutionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        if given.pages:
            write(name, notebook)
        elif found := differences(
            printed(notebook), printed(nbformat.read(PAGES / f"{name}.ipynb", as_version=4))
        ):
            print(
                f"{name}: not what its page shows; run_all.py --pages writes it anew",
                *found,
                sep="\n",
                file=sys.stderr,
            )
            return 1
        print(f"{name}: executed in {time.perf_counter() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
