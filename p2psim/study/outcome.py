"""What one replica of one cell gives: plain arrays, to be written by whoever asked for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.learning.metrics import Series

__all__ = ["Outcome", "Series"]


@dataclass(frozen=True)
class Outcome:
    """Results of one simulation.

    Attributes
    ----------
    ended : str
        ``commits``, ``time`` or ``exhausted`` (no agent could act any more).
    series : tuple of Series
        The recorded metrics.
    ledger, agents : dict of ndarray, shape (N,) each
        Columns of the run folder's tables, one row an agent.
    events : ndarray of EVENT or None
        When recorded.
    noise : ndarray, shape (releases, p), or None
        As added to the gradients, ordered by (agent, release); when recorded.
    models : ndarray, shape (records, p), or None
        The learner's recorded models; when recorded.
    problem_id : str
        Names the prepared data in the workspace.
    warnings : tuple of str
    """

    ended: str
    series: tuple[Series, ...]
    ledger: dict[str, np.ndarray]
    agents: dict[str, np.ndarray]
    events: np.ndarray | None
    noise: np.ndarray | None
    models: np.ndarray | None
    problem_id: str
    warnings: tuple[str, ...]
