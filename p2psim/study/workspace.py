"""Prepared problems on disk, made once and shared by all workers through memory maps."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.errors import MeaningError

if TYPE_CHECKING:
    from p2psim.learning.star_problem import StarProblem
    from p2psim.study.scenario import Scenario

_ARRAYS = ("X", "y", "offsets", "x_l1", "gram", "moment", "energy", "optimum")

#: Problems that a process keeps open. Cells of one replica follow each other, and few differ in their data.
_OPEN = 8

#: Scenarios whose identifiers a process remembers.
_KNOWN = 256


@dataclass(frozen=True)
class Case:
    """A problem, and what is publicly known of those who hold it.

    Attributes
    ----------
    problem_id : str
        Hash of all that determines it.
    problem : StarProblem
    labels : tuple of str
    groups : tuple of str or None
    x_l1, x_max, y_max : float or None
        Public bounds on ‖x‖₁, |x_j| and |y|, the intercept not counted.
    fitted : dict
        What the preparation found, in plain JSON types.
    warnings : tuple of str
    """

    problem_id: str
    problem: StarProblem
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None
    x_l1: float | None
    x_max: float | None
    y_max: float | None
    fitted: dict[str, Any]
    warnings: tuple[str, ...]


class Workspace:
    """Cases by what determines them; those that no replica redraws lie in a directory.

    Parameters
    ----------
    directory : Path
        May be shared by several processes.
    """

    def __init__(self, directory: Path):
        self.directory = Path(directory)
        self._open: OrderedDict[str, Case] = OrderedDict()
        # Identifiers by the scenario's id; the scenario is kept with them, so that the id stays its own.
        self._known: OrderedDict[tuple[int, int | None], tuple[Scenario, str]] = OrderedDict()

    def prepare(self, scenario: Scenario) -> None:
        """Make a scenario's case; on disk, unless every replica draws its own.

        Raises
        ------
        MeaningError, MissingSourceError
            If the data cannot be prepared as the scenario says.
        """
        self.case(scenario, 0)

    def case(self, scenario: Scenario, replica: int) -> Case:
        """Case of a scenario (without a sweep) in one replica."""
        problem_id = self._identify(scenario, replica)
        if problem_id in self._open:
            self._open.move_to_end(problem_id)
            return self._open[problem_id]
        shared = not scenario.data.redrawn
        if shared and (self.directory / problem_id).is_dir():
            case = self._read(problem_id, scenario)
        else:
            case = _make(problem_id, scenario, replica)
            if shared:
                self._write(case)
                case = self._read(problem_id, scenario)
        self._open[problem_id] = case
        while len(self._open) > _OPEN:
            self._open.popitem(last=False)
        return case

    def problems(self) -> list[str]:
        """Identifiers of the cases on disk."""
        if not self.directory.is_dir():
            return []
        return sorted(
            path.name for path in self.directory.iterdir() if path.is_dir() and "." not in path.name
        )

    def arrays(self, problem_id: str) -> dict[str, np.ndarray]:
        """Arrays of a case, for the run folder: those of `StarProblem`, and its minimum.

        Raises
        ------
        KeyError
            If the case is neither on disk nor open.
        """
        if problem_id in self._open:
            problem = self._open[problem_id].problem
            arrays = {name: np.asarray(getattr(problem, name)) for name in _ARRAYS}
            return {**arrays, "minimum": np.array(problem.minimum)}
        folder = self.directory / problem_id
        if not folder.is_dir():
            raise KeyError(problem_id)
        return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in (*_ARRAYS, "minimum")}

    def fitted(self, scenario: Scenario) -> dict[str, Any]:
        """What the preparation found; empty for data that every replica redraws."""
        return {} if scenario.data.redrawn else self.case(scenario, 0).fitted

    def _identify(self, scenario: Scenario, replica: int) -> str:
        key = id(scenario), replica if scenario.data.redrawn else None
        if key not in self._known:
            self._known[key] = scenario, _identify(scenario, replica)
            while len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        return self._known[key][1]

    def _write(self, case: Case) -> None:
        """Write aside and rename, so that others find the whole or nothing."""
        aside = self.directory / f"{case.problem_id}.{uuid.uuid4().hex}"
        aside.mkdir(parents=True)
        for name in _ARRAYS:
            np.save(aside / f"{name}.npy", getattr(case.problem, name))
        np.save(aside / "minimum.npy", np.array(case.problem.minimum))
        known = {
            key: getattr(case, key)
            for key in ("labels", "groups", "x_l1", "x_max", "y_max", "fitted", "warnings")
        }
        (aside / "case.json").write_text(json.dumps(known))
        try:
            os.rename(aside, self.directory / case.problem_id)
        except OSError:
            if not (self.directory / case.problem_id).is_dir():
                raise
            shutil.rmtree(aside)  # someone else was faster; the bytes are the same

    def _read(self, problem_id: str, scenario: Scenario) -> Case:
        from p2psim.learning.star_problem import StarProblem

        folder = self.directory / problem_id
        known = json.loads((folder / "case.json").read_text())
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray) for name in _ARRAYS}
        problem = StarProblem(
            loss=scenario.learning.loss,
            l2=scenario.learning.regularizer.l2,
            theta_max=scenario.learning.algorithm.theta_max,
            minimum=float(np.load(folder / "minimum.npy")),
            **arrays,
        )
        groups = tuple(known["groups"]) if known["groups"] is not None else None
        return Case(
            problem_id, problem, tuple(known["labels"]), groups, known["x_l1"], known["x_max"], known["y_max"],
            known["fitted"], tuple(known["warnings"]),
        )  # fmt: skip


def _identify(scenario: Scenario, replica: int) -> str:
    learning = scenario.learning
    tree = scenario.resolved()
    parts = {
        "data": tree["data"],
        "seed": scenario.data.seed if scenario.data.seed is not None else scenario.seed,
        "replica": replica if scenario.data.redrawn else None,
        "variant": data_variant(scenario),
        "agents": scenario.network.topology.agents,
        "loss": tree["learning"]["loss"],
        "l2": learning.regularizer.l2,
        "theta_max": learning.algorithm.theta_max,
    }
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def data_variant(scenario: Scenario) -> str:
    """What tells this cell's data draws apart from those of others; empty when they are shared."""
    from p2psim.study.cells import content

    return content(scenario) if "data" in scenario.independent else ""


def _make(problem_id: str, scenario: Scenario, replica: int) -> Case:
    from threadpoolctl import threadpool_limits

    from p2psim.data.prepare import prepare
    from p2psim.learning.star_problem import star_problem

    learning = scenario.learning
    prepared = prepare(
        scenario.data, scenario.seed, replica, data_variant(scenario), scenario.network.topology.agents
    )
    if learning.loss.needs_classes and not prepared.classes:
        raise MeaningError(
            "learning.loss", f"{learning.loss.kind} needs labels that are +1 or −1; these are not"
        )
    with threadpool_limits(limits=1, user_api="blas"):  # sums must not depend on the number of threads
        problem = star_problem(
            prepared.X,
            prepared.y,
            prepared.offsets,
            learning.loss,
            learning.regularizer.l2,
            learning.algorithm.theta_max,
        )
    warnings = prepared.warnings
    if problem.box_is_active:
        warnings += ("the optimum lies on the boundary of Θ: theta_max is active",)
    return Case(
        problem_id, problem, prepared.labels, prepared.groups, prepared.x_l1, prepared.x_max, prepared.y_max,
        prepared.fitted, warnings,
    )  # fmt: skip
