"""Write docs/gallery.md: every shipped scenario with its question, its figure, its command and its file.

``python docs/make_gallery.py`` reads scenarios/*.yaml and the names in docs/images; a test fails if the page differs.
"""

from pathlib import Path

from p2psim.core.printing import counted
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"

#: Title of each family, and the algorithms in it.
FAMILIES = {
    "A learner asks owners, one at a time": ("async-star", "fedasync", "fedbuff"),
    "A learner asks owners in rounds": ("synchronous-averaging", "synchronous-descent", "fedavg"),
    "A personal model for each agent on a graph": ("coordinate-descent", "model-propagation", "gossip-admm"),
    "One model for all agents on a graph": ("decentralised-sgd", "gossip-learning", "averaging", "push-sum"),
}

#: Figures that are not called like the scenario that they were drawn from.
FIGURES = {
    "topology_budget": "study_dropout_topology",
    "f_fig11_svm": "papers/f_fig11_top",
    "w_fig3_surface": "papers/w_fig4_epsilon",
}

HEAD = """# Gallery

All scenarios that come with p2psim, each with its question. Start from the one whose question is closest to yours:
`p2psim new MINE --from NAME` copies it, and a file that [extends](guide.md#a-scenario-that-changes-another) it
contains only what differs. `p2psim check FILE` prints what a run would take; `--replicas 2` makes a first look cheap.
Figures are of runs at full size or of parts of them: [the papers](papers.md) and [the studies](studies.md) give the
details.
"""


def figures(names: list[str]) -> dict[str, str]:
    """The figure of each scenario that has one: its own name, or that with more behind it, begins the figure's."""
    found = dict(FIGURES)
    images = ROOT / "docs" / "images"
    for path in sorted(images.rglob("*.png")):
        stem = path.stem.removeprefix("study_")
        owners = [name for name in names if f"{stem}_".startswith(f"{name}_")]
        if owners and path.relative_to(images).with_suffix("").as_posix() not in FIGURES.values():
            found.setdefault(max(owners, key=len), path.relative_to(images).with_suffix("").as_posix())
    return found


def entry(path: Path, scenario: Scenario, figure: str | None) -> str:
    """The section of one scenario."""
    name = path.stem
    comment = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
    question = comment[: max(comment.rfind(end) for end in ".?)") + 1]  # a sentence that goes on is left out
    network = scenario.network
    grid = cells(scenario)
    size = f"{counted(len(grid), 'cell')} × {counted(scenario.replicas, 'replica')}"
    keys = ", ".join(f"`{key}`" for key in grid[0].swept)
    algorithm, topology, exchange = (
        scenario.learning.algorithm.kind,
        network.topology.kind,
        network.exchange.kind,
    )
    kinds = f"`{algorithm}`, topology `{topology}`, exchange `{exchange}`"
    lines = [
        f"### {name}\n\n{question}\n",
        f"{kinds}; {size}{f'; sweeps {keys}' if keys else ''}.\n",
    ]
    if figure:
        lines.append(f"![A figure of {name}](images/{figure}.png){{ loading=lazy }}\n")
    lines.append(f"```console\n$ p2psim run scenarios/{path.name}\n```\n")
    lines.append(
        f'??? example "scenarios/{path.name}"\n\n    ```yaml\n    --8<-- "scenarios/{path.name}"\n    ```\n'
    )
    return "\n".join(lines)


def text() -> str:
    """The whole page."""
    paths = sorted((ROOT / "scenarios").glob("*.yaml"))
    scenarios = {path: Scenario.load(path) for path in paths}
    drawn = figures([path.stem for path in paths])
    page = [HEAD]
    for title, kinds in FAMILIES.items():
        page.append(f"## {title}\n")
        for path, scenario in scenarios.items():
            if scenario.learning.algorithm.kind in kinds:
                page.append(entry(path, scenario, drawn.get(path.stem)))
    return "\n".join(page)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
