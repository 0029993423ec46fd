"""Whom it pays to join: isolated against collaborating ψ, and the ε and N at which they break even."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from p2psim.analysis.forecasts.forecast import Forecast
from p2psim.analysis.forecasts.star_setting import MomentRecursion, Setting
from p2psim.analysis.forecasts.variances import answer_variances
from p2psim.core.errors import MeaningError, SimulationError

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


def parties(forecast: Forecast) -> list[JoinDecision]:
    """Isolated and collaborating ψ of every owner."""
    setting, parts = forecast.setting, forecast.parts
    budgets = setting.cell.setup.plan.budget
    factors = _break_even_factors(forecast)
    return [
        JoinDecision(
            label=setting.cell.case.labels[i],
            records=int(setting.cell.problem.records[i]),
            epsilon=float(budgets[i]),
            alone=float(forecast.alone[i]),
            together=forecast.psi,
            noise=float(parts.noise[-1, i]),
            break_even=None if factors[i] is None else float(budgets[i] * factors[i]),
        )
        for i in range(len(budgets))
    ]


def _break_even_factors(forecast: Forecast) -> list[float | None]:
    """By what all budgets must be multiplied for each owner to gain nothing and lose nothing."""
    setting = forecast.setting
    plan_made = setting.cell.setup.plan
    N = len(plan_made.budget)
    if not plan_made.mechanism.is_private or not np.isfinite(plan_made.budget).all():
        return [None] * N
    tried, noise = [], []
    for factor in FACTORS:
        try:
            other = setting.with_plan(budgets=plan_made.budget * factor)
            noise.append(noise_at_the_end(forecast, other))
            tried.append(factor)
        except MeaningError:  # so much or so little noise that its scale is no number
            continue
    factors: list[float | None] = []
    for alone in forecast.alone:
        room = alone - forecast.parts.noiseless[-1]
        if room <= 0:
            factors.append(np.inf)
        elif not tried or not min(noise) <= room <= max(noise):
            factors.append(None)
        else:
            # Noise falls as a power of ε, exactly so under pure DP: straight between points of the logarithms.
            at = np.interp(np.log(room), np.log(noise[::-1]), np.log(tried[::-1]))
            factors.append(float(np.exp(at)))
    return factors


def noise_at_the_end(forecast: Forecast, other: Setting) -> float:
    """What noise adds to E[ψ] at the end under another plan for the same owners."""
    variances = answer_variances(other.cell.setup.plan, other.frequencies, forecast.setting.answers)
    return float(forecast.walk.noise(variances).sum())


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
        plan_made = self.setting.cell.setup.plan
        if not plan_made.mechanism.is_private:
            return float("inf")
        mean = np.mean(1 / plan_made.budget**2)
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
        variances = answer_variances(first.plan(budget), first.frequencies, first.answers)
        noise = walk.noise(np.broadcast_to(variances, (first.answers, owners)))
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
        while owners - last > 1:
            middle = (last + owners) // 2
            last, owners = (last, middle) if self.psi(middle) < alone else (middle, owners)
        return owners
