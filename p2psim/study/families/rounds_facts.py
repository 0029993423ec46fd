"""What can be said of synchronous rounds before they run: size, step, privacy; and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.study.families.learner_cell import assessment
from p2psim.study.families.stage import Assessment, privacy_of

if TYPE_CHECKING:
    from p2psim.study.families.rounds import RoundsCell


def assess(cell: RoundsCell) -> Assessment:
    """Draw up the facts of one cell."""
    problem, plan, steps = cell.problem, cell.stage.plan, cell.method.steps
    facts: dict[str, object] = {
        "owners": problem.owners,
        "records": int(problem.records.sum()),
        "p": problem.dimension,
        "first step": float(steps[0]),
        "sum of steps": float(steps.sum()),
        "first step · λ": None,
        "sum of steps · L": None,
        "f(θ*)": problem.minimum,
        "Ξ": cell.bound,
    }
    warnings = []
    if np.isfinite(problem.loss.curvature):
        mean = np.tensordot(problem.shares, problem.loss.curvature * problem.gram, axes=1)
        eigenvalues = np.linalg.eigvalsh(mean)
        # g adds 2·l2 to every curvature; only the squared loss bounds it from below by more than that.
        steepest = float(eigenvalues[-1]) + 2 * problem.l2
        flattest = 2 * problem.l2 + (
            float(max(eigenvalues[0], 0.0)) if problem.loss.is_squared_error else 0.0
        )
        facts |= {
            "first step · λ": float(steps[0]) * steepest,
            "sum of steps · L": float(steps.sum()) * flattest,
        }
        warnings += _step_warnings(cell, steps * steepest)
    events = steps.size * (2 + 3 * problem.owners)
    return assessment(cell, facts, events, privacy_of(plan), warnings)


def _step_warnings(cell: RoundsCell, relative: np.ndarray) -> list[str]:
    """What is wrong with steps, given times λ, shape (T − 1,)."""
    parameter = "c1" if cell.method.averages else "rho"
    first, last, total = float(relative[0]), float(relative[-1]), float(relative.sum())
    found = []
    if last > 2 and cell.method.projects:
        found.append(
            f"the model is thrown about in Θ: even the last step times λ is {last:.3g}, and above 2 a step leads away "
            f"from the optimum; lower learning.algorithm.{parameter}"
        )
    if first > 2 and not cell.method.projects:
        found.append(
            f"the first steps go too far: step·λ = {first:.3g}, and above 2 the model moves away from the optimum; "
            f"lower learning.algorithm.{parameter}"
        )
    if total < 1:
        found.append(
            f"the model hardly moves: all steps together, times λ, are {total:.3g}; "
            f"raise learning.algorithm.{parameter}"
        )
    return found
