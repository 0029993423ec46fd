"""Whom it pays to join: isolated against collaborating ψ, and the ε and N at which they break even."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from p2psim.errors import MeaningError, SimulationError
from p2psim.privacy.budgets import Limit
from p2psim.privacy.planning import plan
from p2psim.study.forecasting.forecast import Forecast, walk
from p2psim.study.forecasting.setting import Setting, answer_variances, with_plan
from p2psim.theory.forecast.linear_star import linear_star
from p2psim.theory.forecast.split import accumulate

#: All budgets are multiplied by these.
FACTORS = np.logspace(-3, 3, 25)

#: Most owners looked at.
MOST_OWNERS = 10_000


@dataclass(frozen=True)
class Prospect:
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


def parties(forecast: Forecast) -> list[Prospect]:
    """Isolated and collaborating ψ of every owner."""
    setting, parts = forecast.setting, forecast.parts
    budgets = setting.cell.stage.plan.budget
    factors = _break_even_factors(forecast)
    return [
        Prospect(
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
    plan_made = setting.cell.stage.plan
    N = len(plan_made.budget)
    if not plan_made.mechanism.is_private or not np.isfinite(plan_made.budget).all():
        return [None] * N
    tried, noise = [], []
    for factor in FACTORS:
        try:
            other = with_plan(setting, budgets=plan_made.budget * factor)
            noise.append(noise_at_the_end(forecast, other))
            tried.append(factor)
        except MeaningError:  # so much or so little noise that its scale is no number
            continue
    found: list[float | None] = []
    for alone in forecast.alone:
        room = alone - forecast.parts.noiseless[-1]
        if room <= 0:
            found.append(np.inf)
        elif not tried or not min(noise) <= room <= max(noise):
            found.append(None)
        else:
            # Noise falls as a power of ε, exactly so under pure DP: straight between points of the logarithms.
            at = np.interp(np.log(room), np.log(noise[::-1]), np.log(tried[::-1]))
            found.append(float(np.exp(at)))
    return found


def noise_at_the_end(forecast: Forecast, other: Setting) -> float:
    """What noise adds to E[ψ] at the end under another plan for the same star."""
    variances = answer_variances(other.cell.stage.plan, other.frequencies, forecast.setting.horizon)
    total = accumulate(forecast.path.gain, variances)[-1].sum()
    return float(total / forecast.setting.model.minimum)


@dataclass(frozen=True)
class Alike:
    """As many owners as one likes, each like the average of those of a scenario, with equal ε.

    Attributes
    ----------
    setting : Setting
    """

    setting: Setting
    _known: dict[int, tuple[float, np.ndarray]] = field(default_factory=dict, repr=False)

    @property
    def epsilon(self) -> float:
        """The equal ε that makes Σ1/ε² what it is: infinite without noise."""
        plan_made = self.setting.cell.stage.plan
        if not plan_made.mechanism.is_private:
            return float("inf")
        return float(1 / np.sqrt(np.mean(1 / plan_made.budget**2)))

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
        noiseless, gain = self._walked(owners)
        if np.isinf(noiseless):
            return noiseless
        variances = self._variances(owners, self.epsilon if epsilon is None else epsilon)
        noise = accumulate(gain, variances)[-1, 0] * owners
        return float((noiseless + noise) / self.setting.model.minimum)

    def _walked(self, owners: int) -> tuple[float, np.ndarray]:
        """E[f] − f* at the end without noise, infinite where it is no number, and what one owner's noise adds."""
        if owners not in self._known:
            setting = self.setting
            star = linear_star(setting.model.alike(owners), setting.cell.method.step, setting.algorithm.form)
            try:
                found = walk(star, setting.horizon)
                self._known[owners] = float(found.expected[-1]), found.gain[:, :1]
            except SimulationError:
                self._known[owners] = float("inf"), np.zeros((0, 1))
        return self._known[owners]

    def _variances(self, owners: int, epsilon: float) -> np.ndarray:
        setting = self.setting
        cell = setting.cell
        privacy, batch = cell.scenario.privacy, setting.algorithm.batch
        records = np.array([max(1, round(float(setting.model.records.mean())))])
        made = plan(
            privacy.mechanism,
            privacy.allocation,
            Limit(np.array([epsilon]), privacy.delta or 0.0, privacy.enforcing),
            cell.bound,
            batch.divisors(records),
            setting.horizon,
            np.array([1 / owners]),
            privacy.scale_records,
            rates=batch.rates(records),
            dimension=cell.problem.dimension,
        )
        return answer_variances(made, np.array([1 / owners]), setting.horizon)

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
