"""Make the figures and the numbers of the pages on the papers anew (docs/papers/*.md).

``python docs/make_papers.py`` runs each row of `ROWS`, two at a time, draws its images into docs/images/papers and
writes where each cell ended to runs/papers/NAME.csv: quartiles, mean and standard error over replicas. ``--only NAME``
makes single rows. ``--small`` takes one replica, and leaves the images of the pages alone. ``--list`` says how long
rows take, and makes none. A folder of runs that is there already is used as it is. At the end it says how long it took,
and what each run took of a processor.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images" / "papers"

#: Settings of Matplotlib are those of all threads.
DRAWING = Lock()

#: Of a processor, to start p2psim twice and to draw what a row shows.
DRAWING_SECONDS = 5


@dataclass(frozen=True)
class Row:
    """A run of a scenario, and what the pages show of it.

    Attributes
    ----------
    scenario : str
        A shipped scenario.
    replicas : int
        As many as the pages state.
    seconds : int
        Of a processor, that the run took when the numbers of the pages were measured.
    images : mapping
        Names of images by the name of the file that ``p2psim plot`` writes.
    name : str
        Of the folder and the table of numbers; that of the scenario by default.
    changes : tuple of str
        What ``--set`` is given.
    surface : mapping
        Titles and swept keys by names of images: a heat map of mean final ψ across the first key and up the second,
        with a panel for each value of a third. They are numbered in the order of the sweep; keys that advance together
        are one.
    edges : str
        Name of an image: gap and accuracy by vectors, where a broadcast counts once for each neighbour.
    smaller : tuple of str
        What ``--small`` changes beside, so that the row is as cheap as others.
    """

    scenario: str
    replicas: int
    seconds: int
    images: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    changes: tuple[str, ...] = ()
    surface: Mapping[str, tuple[str, Sequence[int]]] = field(default_factory=dict)
    edges: str = ""
    smaller: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """What ``--only`` takes."""
        return self.name or self.scenario

    def run(self, out: Path, small: bool = False) -> list[str]:
        """Arguments of p2psim that make the run."""
        changed = (*self.changes, *(self.smaller if small else ()))
        changes = [word for change in changed for word in ("--set", change)]
        replicas = str(1 if small else self.replicas)
        file = ROOT / "scenarios" / f"{self.scenario}.yaml"
        options = ["--replicas", replicas, "--jobs", "1", "--quiet", *changes]
        return ["run", str(file), "--out", str(out / self.called), *options]

    def draw(self, out: Path) -> list[str]:
        """Arguments of p2psim that draw the figures."""
        return ["plot", str(out / self.called), "--out", str(out / self.called / "figures")]


ROWS = (
    Row(
        "w_fig2_lending",
        100,
        2,
        {"fitness-shuffle-False": "w_fig2_lending_stand", "fitness-shuffle-True": "w_fig2_lending_white"},
    ),
    Row(
        "w_fig3_surface",
        100,
        46,
        {"epsilon": "w_fig4_epsilon", "size": "w_fig5_size"},
        surface={"w_fig3_surface": ("W figure 3, generated: final ψ by ε and records", (0, 1))},
    ),
    Row(
        "w_fig6_value",
        100,
        81,
        {"collaboration-0-0-1000": "w_fig6_value_small", "collaboration-0-0-100000": "w_fig6_value_large"},
        surface={"w_fig6_surface": ("W figure 6, generated: final ψ by partners", (1, 2, 0))},
    ),
    Row(
        "w_fig7_fraud",
        100,
        68,
        {"fitness-l2-0.5": "w_fig7_fraud_half", "fitness-l2-5e-06": "w_fig7_fraud_small"},
    ),
    Row(
        "w_fig8_fraud_surface",
        100,
        46,
        {"epsilon": "w_fig9_fraud_epsilon", "size": "w_fig10_fraud_size"},
        surface={"w_fig8_fraud_surface": ("W figure 8, cards: final ψ by ε and records", (0, 1))},
    ),
    Row(
        "w_fig11_value",
        100,
        131,
        {"collaboration-0-0-5000": "w_fig11_value"},
        surface={"w_fig11_surface": ("W figure 11, cards: final ψ by partners", (1, 2, 0))},
    ),
    Row("w_owner_learns", 100, 6),
    Row("w_frozen", 10, 5, {"finals-relative_fitness": "w_frozen"}),
    Row("w_algorithm1", 10, 2, {"fitness": "w_algorithm1", "epsilon": "w_algorithm1_epsilon"}),
    Row("w_remark1_svm", 10, 18, {"epsilon": "w_remark1_svm"}),
    Row("w_remark1_network", 10, 22, {"finals-test_accuracy": "w_remark1_network"}),
    Row("f_fig2_fitness", 40, 75, {"fitness": "f_fig2_fitness", "timing": "f_fig3_timing"}),
    Row(
        "f_fig4_surface",
        30,
        120,
        {"size": "f_fig5_bottom"},
        surface={"f_fig4_surface": ("F figure 4, generated: final ψ by ε and records", (1, 0))},
    ),
    Row("f_fig5_top", 50, 9, {"epsilon": "f_fig5_top"}),
    Row(
        "f_fig5_top",
        20,
        2,
        name="f_test_loss",
        changes=(
            "data.test_fraction=0.2",
            "record.metrics=[relative_fitness, test_loss]",
            "sweep.privacy.epsilon=[0.1, 1, 10, .inf]",
        ),
    ),
    Row(
        "f_fig6_partners",
        60,
        125,
        {
            "collaboration-agents-allocation-cap-tail-1e-06": "f_fig6_partners_cap",
            "collaboration-agents-allocation-horizon": "f_fig6_partners_horizon",
        },
        surface={"f_fig6_surface": ("F figure 6, generated: final ψ by ε and owners", (2, 1, 0))},
    ),
    Row("f_hospitals", 40, 40, {"alone-allocation-cap-tail-1e-06": "f_hospitals_cap"}),
    Row(
        "f_hospitals_real", 100, 2, {"alone": "f_hospitals_real_alone", "fitness": "f_hospitals_real_fitness"}
    ),
    Row("f_fig11_svm", 50, 24, {"epsilon": "f_fig11_top", "size": "f_fig11_bottom"}),
    Row("f_thm2_fixed_rho", 10, 31, {"finals-relative_fitness": "f_thm2_fixed_rho"}),
    Row(
        "b_fig1",
        5,
        105,
        {
            "curves-objective_gap": "b_fig1_iterations",
            "curves-objective_gap-vectors_sent": "b_fig1_vectors",
            "curves-test_accuracy": "b_fig1_accuracy",
            "curves-test_accuracy-vectors_sent": "b_fig1_accuracy_vectors",
        },
        edges="b_fig1_edges",
    ),
    Row(
        "b_fig2a_paper",
        5,
        20,
        {"curves-objective_gap": "b_fig2a_paper", "curves-test_accuracy": "b_fig2a_accuracy"},
    ),
    Row("b_fig2a_strict", 5, 5),
    Row(
        "b_fig2_tuned",
        5,
        29,
        {
            "curves-test_accuracy-dimension-100": "b_fig2b_tuned",
            "finals-test_accuracy": "b_fig2_tuned",
        },
        changes=("tune.replicas=5",),
        smaller=("tune.replicas=1",),
    ),
    Row(
        "b_fig2_start_tuned",
        5,
        12,
        {"finals-test_accuracy": "b_fig2_start_tuned"},
        changes=("tune.replicas=5",),
        smaller=("tune.replicas=1",),
    ),
    Row(
        "b_fig2b_start",
        5,
        54,
        {"curves-test_accuracy": "b_fig2b_start_accuracy", "curves-objective_gap": "b_fig2b_start_gap"},
    ),
    Row("b_fig2b_paper", 5, 6, {"curves-test_accuracy": "b_fig2b_paper"}),
    Row("b_fig2b_strict", 5, 2),
    Row("b_fig2c_start", 5, 6),
    Row("b_fig2c_paper", 5, 14, {"finals-test_accuracy": "b_fig2c_paper"}),
    Row("b_fig2c_strict", 5, 4, {"finals-test_accuracy": "b_fig2c_strict"}),
    Row("b_fig3_paper", 5, 4, {"agents-test_accuracy": "b_fig3_paper"}),
    Row("b_fig3_strict", 5, 1, {"agents-test_accuracy": "b_fig3_strict"}),
    Row("b_fig4", 5, 20, {"finals-test_accuracy": "b_fig4"}),
    Row("b_table1_paper", 5, 15, {"finals-test_rmse": "b_table1_paper"}),
    Row("b_table1_strict", 5, 11, {"finals-test_rmse": "b_table1_strict"}),
    Row(
        "b_table1_tuned",
        1,
        75,
        changes=("sweep={data.seed: [0, 1, 2, 3, 4], privacy.epsilon: [1.0, 0.5, 0.1]}",),
        smaller=("sweep={data.seed: [0, 1], privacy.epsilon: [1.0]}",),
    ),
    Row("b_warm_start", 1, 44),
)


def numbers(folder: Path) -> str:
    """Where each cell, model and metric ended, as CSV."""
    import pandas as pd

    from p2psim import Result

    result = Result.load(folder)
    last = result.last_values(["cell", "model", "metric", "replica"]).groupby(["cell", "model", "metric"])
    table = last.describe()[["count", "25%", "50%", "75%", "mean"]]
    table["standard error"] = last.sem()
    values = [{"cell": number, **cell.swept} for number, cell in enumerate(result.described.cells)]
    return pd.DataFrame(values).merge(table.reset_index(), on="cell").to_csv(index=False)


def listed(rows: list[Row]) -> str:
    """How long rows take, by what their runs took when they were measured."""
    minutes = [(row.seconds + DRAWING_SECONDS) / 60 for row in rows]
    lines = [f"{row.called:21} {row.replicas:8} {cost:8.1f}" for row, cost in zip(rows, minutes, strict=True)]
    total = f"{sum(minutes):.0f} minutes of a processor, {max(sum(minutes) / 2, *minutes):.0f} on two that are free"
    return "\n".join([f"{'row':21} replicas  minutes", *lines, total])


def surface(folder: Path, title: str, order: Sequence[int]) -> "Figure":
    """Mean final ψ over two keys, a panel for each value of a third; a frame where owner 1 does better than alone."""
    from dataclasses import replace

    import numpy as np
    import pandas as pd
    from matplotlib.patches import Rectangle

    from p2psim import Result
    from p2psim.report import notes, panels, style
    from p2psim.report.channels import dimensions
    from p2psim.report.figures.surface import draw_maps
    from p2psim.report.source import FITNESS, source

    result = Result.load(folder)
    material = source(result)
    across, down, *others = (dimensions(material)[at] for at in order)
    ends = result.metrics.drop_duplicates(["cell", "model", "metric", "replica", "agent"], keep="last")
    ends = ends[ends["agent"].isna() | (ends["agent"] == 0)]
    means = ends.groupby(["cell", "metric"], observed=True)["value"].mean().unstack()
    empty = pd.DataFrame(np.nan, index=range(len(down)), columns=range(len(across)))
    maps = {name: empty.copy() for name in (others[0].labels if others else ("",))}
    frames = []
    for cell, mean in means.iterrows():
        name = others[0].labels[others[0].position[cell]] if others else ""
        y, x = down.position[cell], across.position[cell]
        maps[name].iloc[y, x] = mean[FITNESS]
        if mean[FITNESS] < mean.get("isolated_fitness", -np.inf):
            frames.append((list(maps).index(name), x, y))
    figure, grid = draw_maps(maps, across, down, FITNESS, log=True)
    for panel, x, y in frames:
        frame = Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, fill=False, lw=2.5, ec=style.ALARM)
        grid[panel].add_patch(frame)
    note = f"n = {notes.replicas([result.manifest['replicas']])}; colour: mean of the last record."
    note += (
        " Red frame: better for owner 1 than the optimum of its own records, without noise." if frames else ""
    )
    panels.finish(figure, replace(material, heading=title), "", [note])
    return figure


def edges(folder: Path) -> "Figure":
    """Gap and accuracy by vectors along edges: a broadcast goes to each neighbour, other messages to one."""
    from dataclasses import replace

    from p2psim import Result
    from p2psim.report import notes, panels, scales
    from p2psim.report.channels import Plan
    from p2psim.report.curves import curves
    from p2psim.report.source import source

    result = Result.load(folder)
    material = source(result, against="vectors_sent")
    plan = Plan(material)
    figure, grid = panels.metric_panels(plan, ["objective_gap", "test_accuracy"], "p-vectors along edges")
    cells = {line.number: result.described.cells[cell].swept for cell, line in plan.of_cell.items()}
    degrees = result.metrics[result.metrics["metric"] == "degree_mean"].groupby("cell")["value"].first()
    of_line = {line.number: degrees[cell] for cell, line in plan.of_cell.items()}
    for (axes,), metric in zip(grid, ("objective_gap", "test_accuracy"), strict=True):
        drawn = []
        for one in curves(material, metric, plan):
            broadcast = cells[one.line.number]["network.exchange"] == "broadcast"
            x = one.what.x * (of_line[one.line.number] if broadcast else 1)
            drawn.append(replace(one, what=replace(one.what, x=x)))
            panels.draw_curve(axes, drawn[-1])
        values = [value for one in drawn for value in one.what.values]
        scales.fit_values(axes, values, metric == "objective_gap")
        scales.few_ticks(axes)
    panels.explain(figure, [axes for (axes,) in grid], plan, drawn)
    count = result.manifest["replicas"]
    remark = f"{notes.spread(material, [count])} A broadcast counts once for each neighbour."
    panels.finish(figure, replace(material, heading="B figure 1: by vectors along edges"), "", [remark])
    return figure


def took(folder: Path) -> float:
    """Seconds of a processor that a run took, and the validation study in it that tuned it."""
    from p2psim import Result

    used = 0.0
    for each in (folder, folder / "tuning"):
        if each.exists():
            for invocation in Result.load(each).manifest["invocations"]:
                for part in (invocation["resources"], invocation["of_workers"]):
                    used += part["user_time"] + part["sys_time"]
    return used


def make(row: Row, out: Path, small: bool) -> str:
    """Make a row; returns what went wrong."""
    for arguments in (row.run(out, small), *([row.draw(out)] if row.images else [])):
        done = subprocess.run(
            [sys.executable, "-m", "p2psim", *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        if done.returncode:
            return done.stderr
    (out / f"{row.called}.csv").write_text(numbers(out / row.called), encoding="utf-8")
    for drawn, name in row.images.items():
        image = out / row.called / "figures" / f"{drawn}.png"
        if not image.exists():
            there = sorted(file.stem for file in image.parent.glob("*.png"))
            return f"no figure {drawn}; there is {', '.join(there)}"
        if not small:
            shutil.copy(image, IMAGES / f"{name}.png")
    if row.surface or row.edges:
        from p2psim.report import files, style

        with DRAWING, style.look():
            drawn = {name: surface(out / row.called, *asked) for name, asked in row.surface.items()}
            drawn |= {row.edges: edges(out / row.called)} if row.edges else {}
            files.save_all(drawn, out / row.called / "figures", ["png"])
    for name in (*row.surface, *filter(None, [row.edges])) if not small else ():
        shutil.copy(out / row.called / "figures" / f"{name}.png", IMAGES / f"{name}.png")
    return ""


def main() -> int:
    """Make all rows or some; returns 1 where one failed."""
    known = {row.called: row for row in ROWS}
    parser = argparse.ArgumentParser(description="Make the figures and the numbers of docs/papers anew.")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/papers"), help="where to; runs/papers by default"
    )
    parser.add_argument("--only", action="append", choices=known, metavar="NAME", help="may be given again")
    parser.add_argument(
        "--small", action="store_true", help="one replica; images of the pages are left alone"
    )
    parser.add_argument("--list", action="store_true", help="say how long rows take, and make none")
    args = parser.parse_args()
    rows = [known[name] for name in args.only or known]
    if args.list:
        print(listed(rows))
        return 0
    out = args.out.resolve() / ("small" if args.small else "")
    out.mkdir(parents=True, exist_ok=True)
    began, used, failed = time.monotonic(), 0.0, 0
    with ThreadPoolExecutor(2) as pool:
        for row, fault in zip(rows, pool.map(lambda row: make(row, out, args.small), rows), strict=True):
            seconds = 0.0 if fault else took(out / row.called)
            print(f"{row.called}: {fault.strip() or f'done, {seconds:.0f} s of a processor'}", flush=True)
            used, failed = used + seconds, failed + bool(fault)
    minutes = (time.monotonic() - began) / 60
    print(f"{minutes:.1f} minutes; runs took {used / 60:.1f} of a processor")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
