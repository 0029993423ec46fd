"""Coalitions of owners by forecast: what each reaches, what each owner adds, and what its ε is worth."""

from dataclasses import dataclass, field

import numpy as np

from p2psim.analysis.forecasts.star_setting import MomentRecursion, Setting
from p2psim.core.errors import InputError, MeaningError, SimulationError
from p2psim.theory.star import MOST_EXACT, Shapley, exact_shapley, members_of, sampled_shapley

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
            raise InputError("an owner's least budget needs two others beside it")
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
        raise InputError("coalitions bargain over ε, and here is none: give a mechanism with noise")
    shares = game.shapley()
    labels, budgets = setting.cell.case.labels, game.budgets.tolist()
    owners = zip(labels, budgets, shares.values.tolist(), shares.errors.tolist(), strict=True)
    stakes = [
        OwnerValue(*known, game.marginal(i), game.least_budget(i) if game.owners > 2 else None)
        for i, known in enumerate(owners)
    ]
    return CoalitionReport(game.table() if game.owners <= MOST_EXACT else [], stakes)
