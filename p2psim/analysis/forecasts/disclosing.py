"""What a party writes of its own data, exactly or with noise, and what that costs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from p2psim.analysis.forecasts.exchange import Charge, Party, check_algorithm
from p2psim.core.errors import InputError, MeaningError
from p2psim.scenario.cells import cells
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.learner_cell import LearnerCell
from p2psim.simulation.algorithms.star_setting import x_bound_of
from p2psim.simulation.workspace import Workspace
from p2psim.theory.forecasts.statistics import SENSITIVITY, disclosed, joint_moment

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario


@dataclass(frozen=True)
class Disclosure:
    """How a party hides its records.

    Attributes
    ----------
    epsilon : float
        ε > 0; infinite for exact numbers.
    delta : float
        0 for Laplace noise, else Gaussian.
    seed : int or None
        Of the noise; from the operating system when None.
    """

    epsilon: float = float("inf")
    delta: float = 0.0
    seed: int | None = None


def disclose(cell: LearnerCell, party: int, how: Disclosure) -> Party:
    """What one owner of a cell would exchange.

    Parameters
    ----------
    cell : LearnerCell
    party : int
        Its number.
    how : Disclosure

    Raises
    ------
    MeaningError
        If the loss is not squared, or there is noise and no public bound.
    InputError
        If the budget is out of range.
    """
    case, problem = cell.case, cell.problem
    if not problem.loss.is_squared_error:
        raise MeaningError(
            "learning.loss", f"second moments are enough for squared loss alone, got {problem.loss.kind}"
        )
    n = int(problem.records[party])
    joint = joint_moment(problem.gram[party], problem.moment[party], float(problem.energy[party]))
    bounded = case.x_l1 is not None or case.x_max is not None
    x_bound = x_bound_of(case, problem, 1) if bounded else None
    charge = None
    if how.epsilon != np.inf:
        if x_bound is None or case.y_max is None:
            raise MeaningError("data.scale", "noise needs public bounds on x and y: give data.scale.x and y")
        charge = _charge(how, n)
        seed = None if how.seed is None else (how.seed, party)
        random = np.random.default_rng(seed)
        draw = random.laplace if charge.mechanism == "laplace" else random.standard_normal
        noise = draw(size=(len(joint) * (len(joint) + 1)) // 2)
        joint = disclosed(joint, x_bound, case.y_max, charge.scale, noise)
    return Party(
        label=case.labels[party],
        records=n,
        gram=joint[:-1, :-1].tolist(),
        moment=joint[:-1, -1].tolist(),
        energy=max(float(joint[-1, -1]), 0.0),
        x_l1=x_bound,
        y_max=case.y_max,
        charge=charge,
    )


def _charge(how: Disclosure, records: int) -> Charge:
    from p2psim.privacy.accounting.gaussian import gaussian_mu

    if not how.epsilon > 0:
        raise InputError(f"the ε of statistics must be positive, got {how.epsilon}")
    if not 0 <= how.delta < 1:
        raise InputError(f"the δ of statistics must be at least 0 and below 1, got {how.delta}")
    norm: Literal["l1", "l2"] = "l2" if how.delta > 0 else "l1"
    moves = SENSITIVITY[norm] / records
    loss = gaussian_mu(how.epsilon, how.delta) if how.delta > 0 else how.epsilon
    return Charge(
        mechanism="gaussian" if how.delta > 0 else "laplace",
        epsilon=how.epsilon,
        delta=how.delta,
        sensitivity=moves,
        norm=norm,
        scale=moves / loss,
        seed=how.seed,
    )


def exported(scenario: Scenario, party: str | None, how: Disclosure) -> list[Party]:
    """What the owners of a scenario, or one of them, would exchange.

    Parameters
    ----------
    scenario : Scenario
        Of a central learner.
    party : str or None
        Label of the only owner that is wanted.
    how : Disclosure

    Raises
    ------
    InputError
        If there is no such owner, the data is swept, or what `disclose` raises.
    """
    check_algorithm(scenario)
    first = cells(scenario, confirm_cells=True)[0]
    if any(key.startswith(("data.", "network.topology")) for key in first.swept):
        raise InputError(
            "the scenario sweeps its data; give --set sweep={} and --set KEY=VALUE for one of them"
        )
    one = first.scenario
    with tempfile.TemporaryDirectory(prefix="p2psim-") as directory:
        case = Workspace(Path(directory)).case(one, 0)
        cell = adapter_of(one).cell(one, case, 0)
        assert isinstance(cell, LearnerCell)
        if party is not None and party not in case.labels:
            raise InputError(f"there is no owner {party}; known: {', '.join(case.labels[:20])}")
        numbers = range(len(case.labels)) if party is None else [case.labels.index(party)]
        return [disclose(cell, i, how) for i in numbers]
