"""Whom it pays to join: isolated against collaborating ψ, and the ε and N at which they break even."""

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from p2psim.analysis.forecasts.star_setting import MomentRecursion, Setting
from p2psim.core.errors import SimulationError

#: All budgets are multiplied by these.
FACTORS = np.logspace(-3, 3, 25)

#: Most owners looked at.
MOST_OWNERS = 10_000


@dataclass(frozen=True)
class JoinDecision:
    """One owner's reasons.

    Attributes
    ----------
    label : str
    records : int
    epsilon : float
        Its budget.
    alone : float
        ψ that it reaches alone, without noise.
    together : float
        Expected ψ of the learner's model at the end.
    noise : float
        Its own noise's part of that.
    break_even : float or None
        ε at which both are the same, if all budgets are multiplied alike; infinite where only the absence of noise
        would do, or not even that; None without a budget or beyond a factor of 1,000.
    """

    label: str
    records: int
    epsilon: float
    alone: float
    together: float
    noise: float
    break_even: float | None

    @property
    def gains(self) -> bool:
        """Whether it pays to join."""
        return self.together < self.alone


@dataclass(frozen=True)
class Alike:
    """As many owners as one likes, each like the average of those of a scenario, with equal ε.

    Attributes
    ----------
    setting : Setting
    """

    setting: Setting
    _known: dict[int, MomentRecursion | None] = field(default_factory=dict, repr=False)

    @property
    def epsilon(self) -> float:
        """The equal ε that makes Σ1/ε² what it is: infinite without noise."""
        plan = self.setting.cell.setup.plan
        mean = np.mean(1 / plan.budget**2) if plan.mechanism.is_private else 0.0
        return float(1 / np.sqrt(mean)) if mean > 0 else float("inf")

    @property
    def alone(self) -> float:
        """Mean ψ of what the real owners reach alone."""
        return float(self.setting.model.isolated.mean())

    def psi(self, owners: int, epsilon: float | None = None) -> float:
        """E[ψ] at the end with so many owners; infinite where the step is unstable for them.

        Parameters
        ----------
        owners : int
        epsilon : float, optional
            Of each owner; `epsilon` when left out.
        """
        walk = self._walked(owners)
        if walk is None:
            return float("inf")
        first = self.setting.alike(owners).first()
        budget = np.array([self.epsilon if epsilon is None else epsilon])
        noise = walk.noise(np.broadcast_to(first.variances(first.plan(budget)), (first.answers, owners)))
        return float(walk.noiseless + noise.sum())

    def _walked(self, owners: int) -> MomentRecursion | None:
        """The run of so many; None where it is unstable."""
        if owners not in self._known:
            try:
                self._known[owners] = self.setting.alike(owners).walk()
            except SimulationError:
                self._known[owners] = None
        return self._known[owners]

    def break_even(self) -> int | None:
        """Least number of owners with which on the average one gains, T and ρ as they are; None where there is none.

        More owners need more answers to converge, so that gains can end again where they are very many. Numbers are
        tried that grow by a quarter, then all the way back to the last that does not gain.
        """
        alone, last, owners = self.alone, 1, 2
        while self.psi(owners) >= alone:
            if owners >= MOST_OWNERS:
                return None
            last, owners = owners, min(owners + max(1, owners // 4), MOST_OWNERS)
        return bisect_left(range(owners), True, last + 1, key=lambda number: self.psi(number) < alone)
