"""What a forecast of rounds takes from how often owners answer, and what of it is not exact."""

from __future__ import annotations

import numpy as np

from p2psim.study.families.answering import answering
from p2psim.study.families.learner_cell import LearnerCell


def arrivals(cell: LearnerCell) -> tuple[np.ndarray, np.ndarray, bool, list[str]]:
    """Probabilities that an owner answers, and that its answer is used, shape (N,) both.

    And whether it is known how often owners are there, and why the rest is not exact.
    """
    network = cell.stage.network
    found = answering(network)
    reasons = list(found.lacking)
    if found.draws:
        reasons.append(f"who answers in time is counted in {found.draws:,} draws")
    has_deadline = getattr(network.exchange, "deadline", None) is not None
    if has_deadline and cell.scenario.privacy.allocation.kind != "horizon":
        reasons.append("answers after the deadline count as given")
    return found.heard, found.used, found.known, reasons
