"""Models that are PyTorch modules, with gradients per record.

PyTorch is an extra, and loaded when a model is first computed. A module comes from a part that the user has registered:
no scenario file names code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from threading import get_ident
from typing import TYPE_CHECKING

import numpy as np

from p2psim.learning.models.protocol import Labels, Model
from p2psim.learning.models.torch_module import (
    FlatModule,
    array,
    import_torch,
    module_of,
    one_thread,
    trained,
)

if TYPE_CHECKING:
    import torch
    from numpy.random import Generator

#: Numbers in the gradients of records that are held at once: more do not stay in the processor's cache.
_MOST_NUMBERS = 2**20

#: Sums without clipping are computed together for at least so many vectors of at most so many parameters: with fewer
#: vectors, or more parameters, one by one is as fast.
_LEAST_VECTORS, _MOST_PARAMETERS = 8, 2**15

#: Numbers of classes that a module is looked for with, where only its number of parameters is known.
_MOST_CLASSES = 10_000


class TorchModel(Model):
    """Base of models that are PyTorch modules; give ``module``, and ``labels`` and ``loss`` where they are others.

    Notes
    -----
    A module is a function of its parameters and the records: it is in evaluation mode, so that dropout does nothing and
    batch normalisation uses the statistics that it was made with, and it must treat each record by itself. θ holds the
    parameters that require gradients, in the order of ``parameters()``. Others, and buffers, stay as the module makes
    them after ``torch.manual_seed(0)``. All is computed in float64, with one thread. The last digits of sums depend on
    which are computed together.
    """

    @abstractmethod
    def module(self, features: int, classes: int) -> torch.nn.Module:
        """Make the module: of records, shape (m, features), to outputs, shape (m, C), or (m, 1) of one number."""

    @property
    def labels(self) -> Labels:
        """Which labels it takes: classes."""
        return "classes"

    def loss(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Loss of each record, shape (m,).

        Of classes the cross-entropy, of signs the logistic loss, of numbers the squared error.

        Parameters
        ----------
        outputs : torch.Tensor, shape (m, k)
        y : torch.Tensor, shape (m,)
            Of int64 where labels are classes, else of float64.
        """
        functional = import_torch().nn.functional
        losses: torch.Tensor
        if self.labels == "classes":
            losses = functional.cross_entropy(outputs, y, reduction="none")
        elif self.labels == "signs":
            losses = functional.softplus(-y * outputs[:, 0])
        else:
            losses = (outputs[:, 0] - y) ** 2
        return losses

    def size(self, features: int, classes: int) -> int:
        """Number of parameters that require gradients."""
        module = module_of(partial(self.module, features, classes), 0)
        size = sum(p.numel() for p in trained(module).values())
        if not size:
            raise ValueError(f"the module of {self.kind} has no parameters that require gradients")
        return size

    def start(self, features: int, classes: int, generator: Generator) -> np.ndarray:
        """Parameters as the module makes them, with a seed of PyTorch's that is drawn from the generator."""
        return self._flat(features, classes, int(generator.integers(2**63))).theta()

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each record, shape (m,)."""
        flat = _opened(self, X.shape[1], theta.size)
        with one_thread() as torch, torch.no_grad():
            return array(flat.losses(flat.numbers(theta), flat.numbers(X), flat.labels(y)))

    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Gradient of each record's loss, shape (m, p)."""
        flat = _opened(self, X.shape[1], theta.size)
        with one_thread():
            return array(flat.gradients(flat.numbers(theta), flat.numbers(X), flat.labels(y)))

    def outputs(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """What the module gives, shape (m, k)."""
        flat = _opened(self, X.shape[1], theta.size)
        with one_thread() as torch, torch.no_grad():
            return array(flat.outputs(flat.numbers(theta), flat.numbers(X)))

    def clipped_sums(
        self,
        thetas: np.ndarray,
        X: np.ndarray,
        y: np.ndarray,
        batches: Sequence[np.ndarray],
        clip: float = np.inf,
        order: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Model.clipped_sums`; several are computed together."""
        count, p = thetas.shape
        flat = _opened(self, X.shape[1], p)
        sums, longest = np.zeros(thetas.shape), np.zeros(count)
        with one_thread():
            if not order and (count < _LEAST_VECTORS or p > _MOST_PARAMETERS):
                for i, rows in enumerate(batches):
                    if rows.size:
                        flat.add_up(thetas[i], X[rows], y[rows], sums[i])
                return sums, longest
            for few in _groups(batches, p if order else 1 + p // 16):
                all_rows, all_held = _padded([batches[i] for i in few])
                theta = flat.numbers(thetas[few])
                # A batch that is too large for one group of records is cut into several.
                width = max(1, _MOST_NUMBERS // (len(few) * p)) if order else all_rows.shape[1]
                for first in range(0, all_rows.shape[1], width):
                    rows, held = all_rows[:, first : first + width], all_held[:, first : first + width]
                    given = theta, flat.numbers(X[rows]), flat.labels(y[rows]), flat.numbers(held)
                    if order:
                        total, norms = flat.clipped(*given, clip, order)
                        longest[few] = np.maximum(longest[few], array(norms))
                    else:
                        total = flat.summed(*given)
                    sums[few] += array(total)
        return sums, longest

    def _flat(self, features: int, classes: int, seed: int = 0) -> FlatModule:
        torch = import_torch()
        module = module_of(partial(self.module, features, classes), seed)
        return FlatModule(module, self.loss, torch.int64 if self.labels == "classes" else torch.float64)


def _opened(model: TorchModel, features: int, size: int) -> FlatModule:
    # Not by the model itself: a list among its keys has no hash. A thread has its own, into which it writes parameters.
    return _kept(type(model), model.model_dump_json(), features, size, get_ident())


@lru_cache(maxsize=16)
def _kept(kind: type[TorchModel], keys: str, features: int, size: int, thread: int) -> FlatModule:
    """The module with so many parameters: θ says for how many classes."""
    model = kind.model_validate_json(keys)
    known = {"numbers": (0,), "signs": (2,), "classes": range(2, _MOST_CLASSES)}[model.labels]
    for classes in known:
        found = model.size(features, classes)
        if found == size:
            return model._flat(features, classes)
        if found > size:
            break
    raise ValueError(f"{size} parameters fit no module of {model.kind} with {features} features")


def _groups(batches: Sequence[np.ndarray], numbers: int) -> Iterator[list[int]]:
    """Places of batches that are computed together, without the empty ones, if a record takes so many numbers."""
    group: list[int] = []
    longest = 0
    for i, rows in enumerate(batches):
        if rows.size:
            longest = max(longest, rows.size)
            if group and (len(group) + 1) * longest * numbers > _MOST_NUMBERS:
                yield group
                group, longest = [], rows.size
            group.append(i)
    if group:
        yield group


def _padded(batches: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of equal number, shape (k, most), filled up by the first of a batch, and 1 of those that count, else 0."""
    most = max(rows.size for rows in batches)
    places, held = np.empty((len(batches), most), np.int64), np.zeros((len(batches), most))
    for i, rows in enumerate(batches):
        places[i, : rows.size], places[i, rows.size :] = rows, rows[0]
        held[i, : rows.size] = 1.0
    return places, held
