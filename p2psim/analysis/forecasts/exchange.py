"""Forecasts from what parties exchange: each writes sums over its records, exactly or with noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from zipfile import BadZipFile

import numpy as np
from pydantic import Field, ValidationError, model_validator

from p2psim.core.errors import InputError, MeaningError, first_line
from p2psim.core.files import fault_of
from p2psim.core.options import Options
from p2psim.core.text_tables import decimal
from p2psim.learning.losses import Loss
from p2psim.learning.optimum import check_unique, minimise_squared
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.learner_cell import LearnerCell, l2_of, star_algorithm
from p2psim.simulation.algorithms.replay import record_bound
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.workspace import Workspace
from p2psim.theory.forecasts.statistics import SENSITIVITY, disclosed, joint_moment

#: PreparedData of parties that nobody has records of.
EXCHANGED = "exchanged"

#: Relative to the largest eigenvalue, how far below 0 one may be by rounding.
_ROUNDING = 1e-12

_Size = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Charge(Options):
    """What a party's numbers cost, when one of its records is replaced; noise is added to each entry once."""

    mechanism: Literal["laplace", "gaussian"]
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    sensitivity: Annotated[float, Field(gt=0)] = Field(
        description="of all entries together, for ‖x‖₁ ≤ 1 and |y| ≤ 1"
    )
    norm: Literal["l1", "l2"]
    scale: Annotated[float, Field(gt=0)] = Field(description="of the noise of each entry")
    seed: int | None = Field(None, description="anybody who knows the seed can remove the noise: no privacy")


class Party(Options):
    """Sums over one party's records.

    The joint moment [[gram, moment], [momentᵀ, energy]] must be positive semidefinite.
    """

    label: str
    records: Annotated[int, Field(gt=0)]
    gram: list[list[float]]
    moment: list[float]
    energy: _Size
    x_l1: Annotated[float, Field(gt=0)] | None = None
    y_max: Annotated[float, Field(gt=0)] | None = None
    charge: Charge | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Party:
        p = len(self.moment)
        if p == 0 or any(len(row) != p for row in self.gram) or len(self.gram) != p:
            message = f"gram must be {p} × {p}, as moment is long, got rows of {[len(r) for r in self.gram]}"
            raise ValueError(message)
        joint = self.joint
        if not np.isfinite(joint).all():
            raise ValueError("gram, moment and energy must be finite")
        if not np.allclose(joint, joint.T, rtol=1e-9, atol=0):
            raise ValueError("gram must be symmetric")
        values = np.linalg.eigvalsh(joint)
        if values[0] < -_ROUNDING * max(values[-1], 0.0):
            raise ValueError(
                f"gram, moment and energy cannot come from records: "
                f"their joint moment has the eigenvalue {values[0]:.3g}"
            )
        return self

    @property
    def joint(self) -> np.ndarray:
        """M, shape (p + 1, p + 1)."""
        return joint_moment(np.array(self.gram), np.array(self.moment), self.energy)


def write_parties(parties: Sequence[Party], file: str) -> None:
    """Write parties as JSON.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    tree = {"p2psim_statistics": 1, "parties": [party.model_dump(mode="json") for party in parties]}
    try:
        Path(file).write_text(json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from error


def read_parties(files: Sequence[str]) -> list[Party]:
    """Parties of all files, in order: JSON as written here, or npz with one array a field, parties first.

    Raises
    ------
    InputError
        If a file is missing or malformed, or parties do not go together.
    """
    parties = [party for file in files for party in _read(file)]
    lengths = {len(party.moment) for party in parties}
    if len(lengths) > 1:
        raise InputError(f"parties have statistics of different numbers of features: {sorted(lengths)}")
    labels = [party.label for party in parties]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InputError(f"parties must have different labels, got more than one {', '.join(twice)}")
    return parties


def _read(file: str) -> list[Party]:
    if (fault := fault_of(file)) is not None:
        raise InputError(fault)
    try:
        if file.endswith(".npz"):
            trees: Any = _arrays(file)
        else:
            tree = json.loads(Path(file).read_text("utf-8"), parse_float=decimal)
            trees = tree["parties"] if isinstance(tree, dict) and "parties" in tree else None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from error
    except (ValueError, KeyError, EOFError, BadZipFile, RecursionError) as error:
        raise InputError(f"{file}: not statistics of parties: {first_line(error)}") from error
    if not isinstance(trees, list) or not trees:
        raise InputError(
            f"{file}: expected a list of at least one party under 'parties', as --export-statistics writes"
        )
    return [_party(tree, f"{file}: party {number}") for number, tree in enumerate(trees)]


def _party(tree: Any, place: str) -> Party:
    try:
        return Party.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(f"{place}{': ' if key else ''}{key}: {first['msg']}") from error


def _arrays(file: str) -> list[dict[str, Any]]:
    with np.load(file, allow_pickle=False) as read:
        known = {name: read[name].tolist() for name in read.files}
    count = len(known["records"])
    labels = known.pop("label", [str(i) for i in range(count)])
    columns: dict[str, list[Any]] = {"label": [str(label) for label in labels], **known}
    unequal = {name: len(values) for name, values in columns.items() if len(values) != count}
    if unequal:
        raise ValueError(f"all arrays must have {count} parties, as records has, got {unequal}")
    return [{name: values[i] for name, values in columns.items()} for i in range(count)]


def case_of(scenario: Scenario, parties: Sequence[Party]) -> PreparedData:
    """A case of parties of whose records only sums are known: whatever looks at a record sees zeros.

    Parameters
    ----------
    scenario : Scenario
        Whose data section is not looked at.
    parties : sequence of Party

    Raises
    ------
    MeaningError
        If the loss is not squared, the scenario is of other parties, or something else depends on records.
    """
    check_algorithm(scenario)
    _check(scenario, parties)
    records = np.array([party.records for party in parties], np.int64)
    sums = ("gram", "moment", "energy")
    gram, moment, energy = (np.array([getattr(party, name) for party in parties]) for name in sums)
    shares, l2 = records / records.sum(), l2_of(scenario)
    pooled, slope = np.tensordot(shares, gram, 1), shares @ moment
    check_unique(pooled, l2, "the statistics of the parties")
    optimum = minimise_squared(pooled, slope, l2, star_algorithm(scenario).theta_max)
    minimum = float(
        shares @ energy - 2 * slope @ optimum + optimum @ pooled @ optimum + l2 * optimum @ optimum
    )
    if not minimum > 0:
        raise InputError(
            f"ψ needs f(θ*) > 0, and these statistics give {minimum:.3g}: "
            "their noise is larger than the variation of the labels"
        )
    n, p = int(records.sum()), moment.shape[1]
    noisy = sum(party.charge is not None for party in parties)
    return PreparedData(
        EXCHANGED,
        {
            # Strides of zero: no memory, however many records there are.
            "X": np.broadcast_to(0.0, (n, p)),
            "y": np.broadcast_to(0.0, n),
            "x_l1": np.broadcast_to(0.0, n),
            "offsets": np.append(0, np.cumsum(records)),
            "gram": gram,
            "moment": moment,
            "energy": energy,
            "optimum": optimum,
            "minimum": np.array(minimum),
            "labels": np.array([party.label for party in parties]),
        },
        tuple(party.label for party in parties),
        None,
        _largest([party.x_l1 for party in parties]),
        None,
        _largest([party.y_max for party in parties]),
        {},
        (f"the statistics of {noisy} of {len(parties)} parties have noise",) if noisy else (),
    )


def _check(scenario: Scenario, parties: Sequence[Party]) -> None:
    sensitivity, agents = scenario.privacy.sensitivity, scenario.network.topology.size
    absences = [getattr(part, "depends", None) for part in scenario.network.availability.reasons]
    by_label = any(reason is not None and reason.on == "label" for reason in absences)
    empirical = sensitivity is not None and sensitivity.needs_records
    other = agents is not None and agents != len(parties)
    batches = star_algorithm(scenario).batch.code is not None
    _check_loss(scenario.learning.score_loss)
    for place, holds, message in (
        ("network.topology.agents", other, f"is {agents}, and there are statistics of {len(parties)}"),
        ("privacy.sensitivity", empirical, "empirical needs the records; take declared or bounds"),
        ("network.availability", by_label, "absences by label need the records"),
        ("learning.algorithm.batch", batches, "batches need the records; take whole"),
    ):
        if holds:
            raise MeaningError(place, message)


def _check_loss(loss: Loss) -> None:
    if not loss.is_squared_error:
        message = f"second moments are enough for squared loss only, got {loss.kind}"
        raise MeaningError("learning.loss", message)


def _largest(bounds: list[float | None]) -> float | None:
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None


def check_algorithm(scenario: Scenario) -> None:
    """Refuse algorithms without a central learner.

    Raises
    ------
    MeaningError
    """
    kind = scenario.learning.algorithm.kind
    if not scenario.learning.algorithm.star_exchanges:
        raise MeaningError("learning.algorithm", f"statistics are of the parties of a learner, got {kind}")


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
    _check_loss(problem.loss)
    n = int(problem.records[party])
    joint = joint_moment(problem.gram[party], problem.moment[party], float(problem.energy[party]))
    bounded = case.x_l1 is not None or case.x_max is not None
    x_bound = record_bound((case.x_l1, case.x_max), problem, 1) if bounded else None
    charge = None
    if how.epsilon != np.inf:
        if x_bound is None or case.y_max is None:
            raise MeaningError("data.scale", "noise needs public bounds on x and y: give data.scale.x and y")
        charge = _charge(how, n)
        random = np.random.default_rng(None if how.seed is None else (how.seed, party))
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
    from p2psim.privacy.accounting.classical import gaussian_mu

    if not how.epsilon > 0:
        raise InputError(f"the ε of statistics must be positive, got {how.epsilon}")
    if not 0 <= how.delta < 1:
        raise InputError(f"the δ of statistics must be at least 0 and below 1, got {how.delta}")
    gaussian = how.delta > 0
    loss = gaussian_mu(how.epsilon, how.delta) if gaussian else how.epsilon
    norm: Literal["l1", "l2"] = "l2" if gaussian else "l1"
    moves = SENSITIVITY[norm] / records
    mechanism: Literal["laplace", "gaussian"] = "gaussian" if gaussian else "laplace"
    return Charge(**vars(how), mechanism=mechanism, sensitivity=moves, norm=norm, scale=moves / loss)


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
        message = "the scenario sweeps its data; give --set sweep={} and --set KEY=VALUE for one of them"
        raise InputError(message)
    scenario = first.scenario
    case = Workspace(None).case(scenario, 0)
    cell = cast("LearnerCell", adapter_of(scenario).cell(scenario, case, 0))
    if party is not None and party not in case.labels:
        raise InputError(f"there is no owner {party}; known: {', '.join(case.labels[:20])}")
    numbers = range(len(case.labels)) if party is None else [case.labels.index(party)]
    return [disclose(cell, i, how) for i in numbers]
