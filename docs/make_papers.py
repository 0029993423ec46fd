"""Make the figures and the numbers of the pages on the papers anew (docs/papers/*.md).

``python docs/make_papers.py`` runs each row of `ROWS`, two at a time, draws its images into docs/images/papers and
writes where each cell ended to runs/papers/NAME.csv: quartiles, mean and standard error over replicas. ``--only NAME``
makes single rows. ``--small`` takes one replica, and leaves the images of the pages alone. A folder of runs that is
there already is used as it is.
"""

import argparse
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
    plot : tuple of str
        Further arguments of ``p2psim plot``; without any, the scenario's own figures are drawn.
    """

    scenario: str
    replicas: int
    images: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    changes: tuple[str, ...] = ()
    plot: tuple[str, ...] = ()

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
        return ["plot", str(out / self.called), "--out", str(out / self.called / "figures"), *self.plot]


ROWS = (
    Row(
        "w_fig2_lending",
        100,
        {"fitness-shuffle-False": "w_fig2_lending_stand", "fitness-shuffle-True": "w_fig2_lending_white"},
    ),
    Row("w_fig3_surface", 2, {"epsilon": "w_fig4_epsilon", "size": "w_fig5_size"}),
    Row(
        "w_fig6_value",
        20,
        {"collaboration-0-0-1000": "w_fig6_value_small", "collaboration-0-0-100000": "w_fig6_value_large"},
    ),
    Row(
        "w_fig7_fraud", 20, {"fitness-l2-0.5": "w_fig7_fraud_half", "fitness-l2-5e-06": "w_fig7_fraud_small"}
    ),
    Row("w_fig8_fraud_surface", 20, {"epsilon": "w_fig8_fraud_surface"}),
    Row("w_fig11_value", 5, {"collaboration-0-0-5000": "w_fig11_value"}),
    Row("w_owner_learns", 100),
    Row("w_frozen", 10, {"finals-relative_fitness": "w_frozen"}),
    Row("w_algorithm1", 10, {"fitness": "w_algorithm1", "epsilon": "w_algorithm1_epsilon"}),
    Row("f_fig2_fitness", 5, {"fitness": "f_fig2_fitness", "timing": "f_fig3_timing"}),
    Row("f_fig4_surface", 5, {"size": "f_fig4_surface"}),
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
            "collaboration-allocation-cap-tail-1e-06": "f_fig6_partners_cap",
            "collaboration-allocation-horizon": "f_fig6_partners_horizon",
        },
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
    Row("b_fig2c_start", 3),
    Row("b_fig2c_paper", 3, {"finals-test_accuracy": "b_fig2c_paper"}),
    Row("b_fig2c_strict", 3, {"finals-test_accuracy": "b_fig2c_strict"}),
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
