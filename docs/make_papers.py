"""Make the figures and the numbers of the pages on the papers anew (docs/papers/*.md).

``python docs/make_papers.py`` runs each row of `ROWS`, two at a time, draws its images into docs/images/papers and
writes where each cell ended to runs/papers/NAME.csv: quartiles, mean and standard error over replicas. ``--only NAME``
makes single rows. ``--small`` takes one replica, and leaves the images of the pages alone. A folder of runs that is
there already is used as it is.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images" / "papers"


@dataclass(frozen=True)
class Row:
    """A run of a scenario, and what the pages show of it.

    Attributes
    ----------
    scenario : str
        A shipped scenario.
    replicas : int
        As many as the pages state.
    images : mapping
        Names of images by the name of the file that ``p2psim plot`` writes.
    name : str
        Of the folder and the table of numbers; that of the scenario by default.
    changes : tuple of str
        What ``--set`` is given.
    surface : mapping
        Names of images by a swept key: a heat map of mean final ψ over that key and ε. ``KEY by OTHER`` makes a
        panel for each value of another key.
    """

    scenario: str
    replicas: int
    images: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    changes: tuple[str, ...] = ()
    surface: Mapping[str, str] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """What ``--only`` takes."""
        return self.name or self.scenario

    def run(self, out: Path, small: bool = False) -> list[str]:
        """Arguments of p2psim that make the run."""
        changes = [word for change in self.changes for word in ("--set", change)]
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
        {"fitness-shuffle-False": "w_fig2_lending_stand", "fitness-shuffle-True": "w_fig2_lending_white"},
    ),
    Row(
        "w_fig3_surface",
        10,
        {"epsilon": "w_fig4_epsilon", "size": "w_fig5_size"},
        surface={"data.source.points": "w_fig3_surface"},
    ),
    Row(
        "w_fig6_value",
        20,
        {"collaboration-0-0-1000": "w_fig6_value_small", "collaboration-0-0-100000": "w_fig6_value_large"},
    ),
    Row(
        "w_fig7_fraud", 100, {"fitness-l2-0.5": "w_fig7_fraud_half", "fitness-l2-5e-06": "w_fig7_fraud_small"}
    ),
    Row(
        "w_fig8_fraud_surface",
        100,
        {"epsilon": "w_fig9_fraud_epsilon", "size": "w_fig10_fraud_size"},
        surface={"data.partition.sizes": "w_fig8_fraud_surface"},
    ),
    Row("w_fig11_value", 40, {"collaboration-0-0-5000": "w_fig11_value"}),
    Row("w_owner_learns", 100),
    Row("w_frozen", 10, {"finals-relative_fitness": "w_frozen"}),
    Row("w_algorithm1", 10, {"fitness": "w_algorithm1", "epsilon": "w_algorithm1_epsilon"}),
    Row("w_remark1_svm", 10, {"epsilon": "w_remark1_svm"}),
    Row("w_remark1_network", 10, {"finals-test_accuracy": "w_remark1_network"}),
    Row("f_fig2_fitness", 5, {"fitness": "f_fig2_fitness", "timing": "f_fig3_timing"}),
    Row("f_fig4_surface", 5, {"size": "f_fig5_bottom"}, surface={"data.source.points": "f_fig4_surface"}),
    Row("f_fig5_top", 50, {"epsilon": "f_fig5_top"}),
    Row(
        "f_fig5_top",
        20,
        name="f_test_loss",
        changes=(
            "data.test_fraction=0.2",
            "record.metrics=[relative_fitness, test_loss]",
            "sweep.privacy.epsilon=[0.1, 1, 10, .inf]",
        ),
    ),
    Row(
        "f_fig6_partners",
        10,
        {
            "collaboration-agents-allocation-cap-tail-1e-06": "f_fig6_partners_cap",
            "collaboration-agents-allocation-horizon": "f_fig6_partners_horizon",
        },
        surface={"network.topology.agents by privacy.allocation": "f_fig6_surface"},
    ),
    Row("f_hospitals", 3, {"alone-allocation-cap-tail-1e-06": "f_hospitals_cap"}),
    Row("f_hospitals_real", 100, {"alone": "f_hospitals_real_alone", "fitness": "f_hospitals_real_fitness"}),
    Row("f_fig11_svm", 50, {"epsilon": "f_fig11_top", "size": "f_fig11_bottom"}),
    Row("f_thm2_fixed_rho", 10, {"finals-relative_fitness": "f_thm2_fixed_rho"}),
    Row(
        "b_fig1",
        5,
        {
            "curves-objective_gap": "b_fig1_iterations",
            "curves-objective_gap-vectors_sent": "b_fig1_vectors",
            "curves-test_accuracy": "b_fig1_accuracy",
        },
    ),
    Row(
        "b_fig2a_paper",
        5,
        {"curves-objective_gap": "b_fig2a_paper", "curves-test_accuracy": "b_fig2a_accuracy"},
    ),
    Row("b_fig2a_strict", 5),
    Row(
        "b_fig2b_start",
        5,
        {"curves-test_accuracy": "b_fig2b_start_accuracy", "curves-objective_gap": "b_fig2b_start_gap"},
    ),
    Row("b_fig2b_paper", 5, {"curves-test_accuracy": "b_fig2b_paper"}),
    Row("b_fig2b_strict", 5),
    Row("b_fig2c_start", 5),
    Row("b_fig2c_paper", 5, {"finals-test_accuracy": "b_fig2c_paper"}),
    Row("b_fig2c_strict", 5, {"finals-test_accuracy": "b_fig2c_strict"}),
    Row("b_fig3_paper", 5, {"agents-test_accuracy": "b_fig3_paper"}),
    Row("b_fig3_strict", 5, {"agents-test_accuracy": "b_fig3_strict"}),
    Row("b_fig4", 5, {"finals-test_accuracy": "b_fig4"}),
    Row("b_table1_paper", 5, {"finals-test_rmse": "b_table1_paper"}),
    Row("b_table1_strict", 5, {"finals-test_rmse": "b_table1_strict"}),
    Row(
        "b_table1_tuned",
        1,
        changes=("sweep={data.seed: [0, 1, 2, 3, 4], privacy.epsilon: [1.0, 0.5, 0.1]}",),
    ),
    Row("b_warm_start", 1),
)


def numbers(folder: Path) -> str:
    """Where each cell, model and metric ended, as CSV."""
    from p2psim import Result

    result = Result.load(folder)
    last = result.last_values(["cell", "model", "metric", "replica"]).groupby(["cell", "model", "metric"])
    table = last.describe()[["count", "25%", "50%", "75%", "mean"]]
    table["standard error"] = last.sem()
    values = [{"cell": number, **cell.swept} for number, cell in enumerate(result.described.cells)]
    lines = [dict(zip(table.index.names, key, strict=True)) | dict(row) for key, row in table.iterrows()]
    import pandas as pd

    return pd.DataFrame(values).merge(pd.DataFrame(lines), on="cell").to_csv(index=False)


def draw_surface(folder: Path, keys: str, file: Path) -> None:
    """Draw mean final ψ over a swept key and ε; a frame where the first owner does better than alone."""
    import numpy as np
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from p2psim import Result

    result, epsilon = Result.load(folder), "privacy.epsilon"
    across, _, panels = keys.partition(" by ")
    ends = result.metrics.drop_duplicates(["cell", "metric", "replica", "agent"], keep="last")
    means = (
        ends[ends["agent"].isna() | (ends["agent"] == 0)]
        .groupby(["cell", "metric"], observed=True)["value"]
        .mean()
    )
    cells = [dict(cell.swept) for cell in result.described.cells]
    first = {str(cell[across]): float(re.findall(r"[\d.]+", str(cell[across]))[0]) for cell in cells}
    columns, rows = sorted(set(first.values())), sorted({float(cell[epsilon]) for cell in cells})
    names = list(dict.fromkeys(str(cell[panels]) for cell in cells)) if panels else [""]
    psi, pays = np.full((2, len(names), len(rows), len(columns)), np.nan)
    for number, cell in enumerate(cells):
        at = names.index(str(cell[panels])) if panels else 0, rows.index(float(cell[epsilon]))
        column = columns.index(first[str(cell[across])])
        psi[(*at, column)] = means[number, "relative_fitness"]
        pays[(*at, column)] = psi[(*at, column)] < means.get((number, "isolated_fitness"), 0.0)
    figure = Figure(
        figsize=(1.5 + (1.5 + 0.85 * len(columns)) * len(names), 1.6 + 0.45 * len(rows)), layout="constrained"
    )
    norm = LogNorm(np.nanmin(psi), np.nanmax(psi))
    for place, name in enumerate(names):
        axes = figure.add_subplot(1, len(names), place + 1)
        mesh = axes.pcolormesh(psi[place], norm=norm, cmap="viridis_r", edgecolors="white", linewidth=1)
        for (row, column), value in np.ndenumerate(psi[place]):
            dark = norm(value) > 0.5
            axes.text(
                column + 0.5, row + 0.5, f"{value:.2g}", ha="center", va="center", color="w" if dark else "k"
            )
            if pays[place, row, column]:
                axes.add_patch(
                    Rectangle((column + 0.04, row + 0.04), 0.92, 0.92, fill=False, lw=2.5, ec="tab:red")
                )
        axes.set_xticks(np.arange(len(columns)) + 0.5, [f"{x:,.0f}" for x in columns])
        axes.set_yticks(np.arange(len(rows)) + 0.5, ["∞" if y == np.inf else f"{y:g}" for y in rows])
        axes.set(xlabel=LABELS[across], ylabel="privacy budget ε per owner" if place == 0 else "", title=name)
    figure.colorbar(mesh, ax=figure.axes, label="mean final relative fitness ψ")
    note = f"means of {result.manifest['replicas']} replicas"
    if pays.any():
        note += "; red frame: better for owner 1 than the optimum of its own records, without noise"
    figure.supxlabel(note, fontsize="small")
    figure.savefig(file, dpi=150)


#: What swept keys are, in words.
LABELS = {
    "data.source.points": "records of each of three owners",
    "data.partition.sizes": "records of each of three owners",
    "network.topology.agents": "owners N, of 10,000 records each",
}


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
    for keys, name in row.surface.items():
        draw_surface(out / row.called, keys, (out / row.called if small else IMAGES) / f"{name}.png")
    return ""


def main() -> int:
    """Make all rows or some; returns how many failed."""
    known = {row.called: row for row in ROWS}
    parser = argparse.ArgumentParser(description="Make the figures and the numbers of docs/papers anew.")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/papers"), help="where to; runs/papers by default"
    )
    parser.add_argument("--only", action="append", choices=known, metavar="NAME", help="may be given again")
    parser.add_argument(
        "--small", action="store_true", help="one replica; images of the pages are left alone"
    )
    args = parser.parse_args()
    out = args.out.resolve() / ("small" if args.small else "")
    out.mkdir(parents=True, exist_ok=True)
    rows = [known[name] for name in args.only or known]
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for row, fault in zip(rows, pool.map(lambda row: make(row, out, args.small), rows), strict=True):
            print(f"{row.called}: {fault.strip() or 'done'}", flush=True)
            failed += bool(fault)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
