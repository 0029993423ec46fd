"""Whom it pays to join: isolated against collaborating ψ by forecast, and what coalitions of owners reach."""

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from p2psim.analysis.forecasts.star_setting import MomentRecursion, Setting
from p2psim.core.errors import InputError, MeaningError, SimulationError
from p2psim.theory.star import MOST_EXACT, Shapley, exact_shapley, members_of, sampled_shapley

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


#: Orders that are drawn where there are too many owners for all coalitions.
PERMUTATIONS = 200

#: Range in which a budget is looked for.
_LEAST, _MOST = 1e-4, 1e6


@dataclass(frozen=True)
class CoalitionForecast:
    """What a coalition reaches.

    Attributes
    ----------
    members : tuple of str
        Labels.
    psi : float
        Expected ψ on everybody's records.
    gaining : int
        How many of the members do worse alone.
    """

    members: tuple[str, ...]
    psi: float
    gaining: int


@dataclass(frozen=True)
class Coalitions:
    """All coalitions of the owners of a setting, judged on the records of everybody.

    Nobody reaches what the zero model does. One owner trains alone, without noise. Two or more run what the scenario
    says among them, with a step that makes their largest h_i what it is among all.

    Attributes
    ----------
    setting : Setting
    """

    setting: Setting
    _walks: dict[int, tuple[Setting, MomentRecursion]] = field(default_factory=dict, repr=False)
    _psi: dict[int, float] = field(default_factory=dict, repr=False)

    @property
    def owners(self) -> int:
        """N."""
        return len(self.setting.model.records)

    @property
    def all(self) -> int:
        """The coalition of all."""
        return (1 << self.owners) - 1

    @property
    def budgets(self) -> np.ndarray:
        """ε of each owner, shape (N,)."""
        return self.setting.cell.setup.plan.budget

    def psi(self, coalition: int) -> float:
        """Expected ψ of what a coalition trains."""
        if coalition not in self._psi:
            members = members_of(coalition)
            if len(members) == 0:
                model = self.setting.model
                psi = float(model.optimum @ model.hessian @ model.optimum / model.minimum)
            elif len(members) == 1:
                psi = float(self.setting.model.isolated[members[0]])
            else:
                psi = self.psi_with(coalition, self.budgets)
            self._psi[coalition] = psi
        return self._psi[coalition]

    def psi_with(self, coalition: int, budgets: np.ndarray) -> float:
        """Expected ψ of two or more with other budgets, shape (N,).

        Raises
        ------
        SimulationError
            If the step is unstable for them.
        """
        if coalition not in self._walks:
            among = self.setting.among(members_of(coalition))
            self._walks[coalition] = among, among.walk(among.factor_among(self.setting))
        among, walk = self._walks[coalition]
        variances = among.variances(among.plan(budgets[members_of(coalition)]))
        return float(walk.noiseless + walk.noise(variances).sum())

    def worth(self, coalition: int) -> float:
        """By how much a coalition lowers ψ below the zero model's."""
        return self.psi(0) - self.psi(coalition)

    def shapley(self, permutations: int = PERMUTATIONS) -> Shapley:
        """Shapley values of the worth: exact up to 12 owners, else from so many random orders."""
        if self.owners <= MOST_EXACT:
            return exact_shapley(np.array([self.worth(coalition) for coalition in range(1 << self.owners)]))
        return sampled_shapley(self.worth, self.owners, permutations, np.random.default_rng(0))

    def marginal(self, owner: int) -> float:
        """Fall of everybody's ψ for a unit more of an owner's ε: −∂ψ/∂ε_i, by a central difference."""
        psi = []
        for factor in (0.999, 1.001):
            budgets = self.budgets.copy()
            budgets[owner] *= factor
            psi.append(self.psi_with(self.all, budgets))
        return float((psi[0] - psi[1]) / (0.002 * self.budgets[owner]))

    def least_budget(self, owner: int) -> float | None:
        """ε from which on the others do no worse with an owner than without; None where no ε makes it so.

        Below it an owner brings more noise than knowledge. The others must grant it, or pay for it, at least this much.

        Raises
        ------
        InputError
            If there are fewer than three owners.
        """
        if self.owners < 3:
            raise InputError("an owner's least budget needs at least two other owners")
        without = self.psi(self.all & ~(1 << owner))

        def worse(epsilon: float) -> bool:
            budgets = self.budgets.copy()
            budgets[owner] = epsilon
            try:
                return self.psi_with(self.all, budgets) > without
            except (MeaningError, FloatingPointError, SimulationError):
                return True

        if worse(_MOST):
            return None
        if not worse(_LEAST):
            return 0.0
        low, high = np.log(_LEAST), np.log(_MOST)
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if worse(float(np.exp(middle))) else (low, middle)
        return float(np.exp(high))

    def table(self) -> list[CoalitionForecast]:
        """Every coalition of up to 12 owners, the best first.

        Raises
        ------
        InputError
            If there are more owners.
        """
        if self.owners > MOST_EXACT:
            raise InputError(
                f"coalitions of at most {MOST_EXACT} owners are listed, got {self.owners}; "
                "the Shapley values of more are sampled"
            )
        labels, forecasts = self.setting.cell.case.labels, []
        for coalition in range(1, self.all + 1):
            members, psi = members_of(coalition), self.psi(coalition)
            gaining = int((psi < self.setting.model.isolated[members]).sum())
            forecasts.append(CoalitionForecast(tuple(labels[i] for i in members), psi, gaining))
        return sorted(forecasts, key=lambda forecast: forecast.psi)


@dataclass(frozen=True)
class OwnerValue:
    """One owner's part in the coalition of all.

    Attributes
    ----------
    label : str
    epsilon : float
    shapley, error : float
        What it adds to what all are worth, and its standard error.
    marginal : float
        Fall of everybody's ψ for a unit more of its ε.
    least_epsilon : float or None
        ε below which the others do better without it.
    """

    label: str
    epsilon: float
    shapley: float
    error: float
    marginal: float
    least_epsilon: float | None


@dataclass(frozen=True)
class CoalitionReport:
    """Coalitions, the best first (none where there are more than 12 owners), and what each owner has in them."""

    coalitions: list[CoalitionForecast]
    stakes: list[OwnerValue]


def market(setting: Setting) -> CoalitionReport:
    """Forecast coalitions, and owners' stakes.

    Raises
    ------
    InputError
        If there is one owner, or no noise.
    """
    game = Coalitions(setting)
    if game.owners < 2:
        raise InputError("coalitions need at least two owners, got 1")
    if not (setting.cell.setup.plan.mechanism.is_private and np.isfinite(game.budgets).all()):
        message = "coalitions need a budget ε, and without noise there is none: give a mechanism with noise"
        raise InputError(message)
    shares = game.shapley()
    labels, budgets = setting.cell.case.labels, game.budgets.tolist()
    owners = zip(labels, budgets, shares.values.tolist(), shares.errors.tolist(), strict=True)
    stakes = [
        OwnerValue(*known, game.marginal(i), game.least_budget(i) if game.owners > 2 else None)
        for i, known in enumerate(owners)
    ]
    return CoalitionReport(game.table() if game.owners <= MOST_EXACT else [], stakes)
