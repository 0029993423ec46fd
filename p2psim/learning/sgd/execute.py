"""Executors: they carry out a program's instructions on a pool of parameter vectors, one per slot.

`CompiledExecutor` runs them one after the other in compiled code. `PlainExecutor` is for models in Python: it sorts
instructions into levels so that gradients that do not depend on each other are computed together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.learning.models.kernels import add_gradient
from p2psim.learning.owner_kernel import draw_batch, snapped
from p2psim.learning.reference import drawn, on_grid
from p2psim.learning.sgd.problem import TrainingTask
from p2psim.learning.sgd.program import COMBINE, GRADIENT, INSTRUCTION, INSTRUCTIONS, Program


class Executor(ABC):
    """Parameter vectors by slot, and what instructions do with them.

    Parameters
    ----------
    task : TrainingTask
    slots : int
        Slots at first; slot 0 holds the first model.

    Attributes
    ----------
    pool : ndarray, shape (slots, p)
    """

    def __init__(self, task: TrainingTask, slots: int):
        self.task = task
        self.pool = np.empty((slots, task.start.size))
        self.pool[0] = task.start

    def run(self, program: Program, noise: np.ndarray) -> None:
        """Carry out the instructions of a program, and clear it."""
        if program.slots > len(self.pool):
            pool = np.empty((program.slots, self.pool.shape[1]))
            pool[: len(self.pool)] = self.pool
            self.pool = pool
        if program.counts[INSTRUCTIONS]:
            self._run(program, noise)
            program.cleared()

    @abstractmethod
    def _run(self, program: Program, noise: np.ndarray) -> None:
        """Carry out instructions."""

    @abstractmethod
    def gradient(self, agent: int, query: int, row: int, at: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """What the instruction `GRADIENT` makes of a model that is in no slot, shape (p,)."""


class _Records(NamedTuple):
    """The task, for the kernel."""

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    all_rows: np.ndarray
    clip: float
    order: int
    ridge: float
    grid: float | None
    model: Any


@njit()
def _execute(program, pool, noise, records, batch):  # type: ignore[no-untyped-def]
    """Carry out all instructions."""
    instructions, inputs, weights = program.instructions, program.inputs, program.weights
    p = pool.shape[1]
    for k in range(program.counts[INSTRUCTIONS]):
        line = instructions[k]
        out = pool[line.out]
        if line.what == COMBINE:
            weight, source = weights[line.first], pool[inputs[line.first]]
            for a in range(p):
                out[a] = weight * source[a]
            for j in range(line.first + 1, line.last):
                weight, source = weights[j], pool[inputs[j]]
                for a in range(p):
                    out[a] += weight * source[a]
        else:
            _gradient(
                line.agent, line.query, line.noise, pool[line.at], out, noise, records, records.grid, batch
            )


@njit()
def _gradient(agent, query, row, theta, out, noise, records, grid, batch):  # type: ignore[no-untyped-def]
    """Mean clipped gradient of a batch with its noise, rounded to the grid, and the regulariser's."""
    first, held = records.offsets[agent], records.offsets[agent + 1] - records.offsets[agent]
    out[:] = 0.0
    if batch is None:
        rows, count, divisor = records.all_rows[first : first + held], held, max(held, 1) * 1.0
    else:
        count = draw_batch(batch, agent, query, held)
        rows, divisor = batch[5], batch[3][agent]
        for r in range(count):
            rows[r] += first
    add_gradient(theta, records.X, records.y, rows, count, records.clip, records.order, records.model, out)
    for a in range(theta.size):
        value = out[a] / divisor
        if row >= 0:
            value += noise[row, a]
        out[a] = snapped(value, grid) + records.ridge * theta[a]


class CompiledExecutor(Executor):
    """For models that have a compiled form."""

    def __init__(self, task: TrainingTask, slots: int):
        super().__init__(task, slots)
        problem = task.problem
        self._batch = task.batch()
        self._records = _Records(
            unwritten(problem.X), unwritten(problem.y), unwritten(problem.offsets), np.arange(problem.y.size),
            task.clip, task.norm, 2 * problem.l2, task.grid,
            problem.model.for_kernel(problem.features, problem.classes),
        )  # fmt: skip

    def _run(self, program: Program, noise: np.ndarray) -> None:
        _execute(program, self.pool, noise, self._records, self._batch)

    def gradient(self, agent: int, query: int, row: int, at: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """See `Executor.gradient`."""
        out, records = np.empty(at.size), self._records
        _gradient(agent, query, row, np.array(at), out, noise, records, records.grid, self._batch)
        return out


#: Numbers in the results that `PlainExecutor` keeps at a time, about.
_KEPT = 2**25


class PlainExecutor(Executor):
    """For models that are computed in Python."""

    def _run(self, program: Program, noise: np.ndarray) -> None:
        lines = program.instructions[: program.counts[INSTRUCTIONS]]
        most = max(64, _KEPT // self.pool.shape[1])
        for first in range(0, lines.size, most):
            self._run_together(lines[first : first + most], program, noise)

    def gradient(self, agent: int, query: int, row: int, at: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """See `Executor.gradient`."""
        line = np.zeros(1, INSTRUCTION)
        line["agent"], line["query"], line["noise"] = agent, query, row
        return np.asarray(self._gradients(line, at[None], noise)[0])

    def _run_together(self, lines: np.ndarray, program: Program, noise: np.ndarray) -> None:
        """Carry out instructions level by level; each has a place of its own for its result until all are done."""
        sources, level = ordered(lines, program.inputs)
        results = np.empty((lines.size, self.pool.shape[1]))

        def read(k: int) -> np.ndarray:
            """What an instruction reads, one row each."""
            return np.array([self.pool[~place] if place < 0 else results[place] for place in sources[k]])

        for now in range(level.max(initial=-1) + 1):
            chosen = np.flatnonzero(level == now)
            gradients = chosen[lines["what"][chosen] == GRADIENT]
            if gradients.size:
                models = np.concatenate([read(k) for k in gradients.tolist()])
                results[gradients] = self._gradients(lines[gradients], models, noise)
            for k in chosen[lines["what"][chosen] == COMBINE].tolist():
                terms = slice(int(lines["first"][k]), int(lines["last"][k]))
                results[k] = program.weights[terms] @ read(k)
        self.pool[lines["out"]] = results  # of those that write the same slot, the last

    def _gradients(self, lines: np.ndarray, models: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Mean gradients of several batches at their models, together, shape (lines, p)."""
        task, problem = self.task, self.task.problem
        sampling, batches, divisors = task.sampling, [], np.empty(lines.size)
        for k, (agent, query) in enumerate(
            zip(lines["agent"].tolist(), lines["query"].tolist(), strict=True)
        ):
            first, held = int(problem.offsets[agent]), int(problem.records[agent])
            places = range(held) if sampling is None else drawn(sampling, agent, query, held)
            divisors[k] = max(held, 1) if sampling is None else sampling.divisors[agent]
            batches.append(first + np.array(places, np.int64))
        sums, _ = problem.model.clipped_sums(models, problem.X, problem.y, batches, task.clip, task.norm)
        values = sums / divisors[:, None]
        noisy = lines["noise"] >= 0
        values[noisy] += noise[lines["noise"][noisy]]
        return np.asarray(on_grid(values, task.grid) + 2 * problem.l2 * models)


def ordered(lines: np.ndarray, inputs: np.ndarray) -> tuple[list[list[int]], np.ndarray]:
    """What each instruction reads, and its level: it can be carried out once all of lower levels are.

    Parameters
    ----------
    lines : ndarray of INSTRUCTION
    inputs : ndarray of int64

    Returns
    -------
    sources : list of list of int
        Of each instruction: the numbers of those whose results it reads, or ~slot for what was in a slot before.
    level : ndarray of int64, shape (instructions,)
    """
    written: dict[int, int] = {}
    sources: list[list[int]] = []
    level: list[int] = []
    columns = (lines[name].tolist() for name in ("what", "out", "at", "first", "last"))
    slots = inputs.tolist()
    for k, (what, out, at, first, last) in enumerate(zip(*columns, strict=True)):
        reads = [written.get(slot, ~slot) for slot in ([at] if what == GRADIENT else slots[first:last])]
        sources.append(reads)
        level.append(1 + max((level[place] for place in reads if place >= 0), default=-1))
        written[out] = k
    return sources, np.array(level, np.int64)


def executor_of(task: TrainingTask, slots: int) -> Executor:
    """The executor for a task's model."""
    compiled = task.problem.model.for_kernel(task.problem.features, task.problem.classes) is not None
    return (CompiledExecutor if compiled else PlainExecutor)(task, slots)
