"""Models that are PyTorch modules, with gradients per record.

PyTorch is an extra, and loaded when a model is first computed. A module comes from a part that the user has registered:
no scenario file names code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache, partial
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import not_installed
from p2psim.learning.models.protocol import Labels, Model

if TYPE_CHECKING:
    import torch
    from numpy.random import Generator


# A worker of a cluster may run several threads, and PyTorch's generator is the process's.
_LOCK = Lock()


def import_torch() -> Any:
    """PyTorch, which is an extra.

    Raises
    ------
    MissingSourceError
        If it is not installed.
    """
    try:
        import torch
    except ModuleNotFoundError:
        raise not_installed("PyTorch", "torch", "learning.model") from None
    return torch


@contextmanager
def one_thread() -> Iterator[Any]:
    """Compute with one thread: other processes use the other cores, and sums must not depend on their number."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(before)


def module_of(make: Callable[[], torch.nn.Module], seed: int) -> torch.nn.Module:
    """Make a module with a seed of PyTorch's generator, which is then as it was before."""
    torch = import_torch()
    with _LOCK, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def trained(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Parameters that require gradients."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


class FlatModule:
    """A module whose parameters are pieces of a vector.

    Parameters
    ----------
    module : torch.nn.Module
        It is put in evaluation mode, and computes in float64.
    loss : callable
        Of outputs, shape (m, k), and labels, shape (m,), to the loss of each record, shape (m,).
    labels : torch.dtype
        What labels are.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        labels: torch.dtype,
    ):
        self._torch, self._loss, self._label_dtype = import_torch(), loss, labels
        self._module = module.double().eval()
        # A copy: ``functional_call`` does not put the parameters of a layer that is used twice back as they were.
        self._called = deepcopy(self._module)
        parameters = trained(self._module)
        self._names, self._parameters = list(parameters), list(parameters.values())
        self._shapes = [p.shape for p in self._parameters]
        self._sizes = [p.numel() for p in self._parameters]
        self._room = self._torch.cat([p.detach().reshape(-1) for p in self._parameters])
        for p, piece in zip(self._parameters, self._room.split(self._sizes), strict=True):
            p.data = piece.view(p.shape)

    def theta(self) -> np.ndarray:
        """The module's parameters, shape (p,)."""
        return array(self._room)

    def numbers(self, values: np.ndarray) -> torch.Tensor:
        """Parameters or records as PyTorch takes them."""
        # PyTorch warns of an array that must not be written to.
        tensor: torch.Tensor = self._torch.from_numpy(values if values.flags.writeable else values.copy())
        return tensor

    def labels(self, y: np.ndarray) -> torch.Tensor:
        """Labels as PyTorch takes them."""
        return self.numbers(y).to(self._label_dtype)

    def outputs(self, flat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Outputs of records, shape (m, k)."""
        pieces = zip(self._names, flat.split(self._sizes), self._shapes, strict=True)
        parameters = {name: piece.view(shape) for name, piece, shape in pieces}
        result: torch.Tensor = self._torch.func.functional_call(self._called, parameters, (x,))
        return result

    def losses(self, flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Loss of each record, shape (m,)."""
        return self._loss(self.outputs(flat, x), y)

    def gradients(self, flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Gradient of each record's loss, shape (m, p)."""

        def of_one(flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.losses(flat, x[None], y[None])[0]

        func = self._torch.func
        result: torch.Tensor = func.vmap(func.grad(of_one), (None, 0, 0))(flat, x, y)
        return result

    def add_up(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        """Write the gradient of the sum of losses to ``out``, shape (p,).

        By the module itself, as usual training does: for one vector that costs less than `summed`.
        """
        torch = self._torch
        with torch.no_grad():
            self._room.copy_(self.numbers(theta))
        loss = self._loss(self._module(self.numbers(X)), self.labels(y)).sum()
        gradients = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        for piece, gradient in zip(torch.from_numpy(out).split(self._sizes), gradients, strict=True):
            piece.copy_(gradient.reshape(-1))

    def summed(
        self, flats: torch.Tensor, x: torch.Tensor, y: torch.Tensor, held: torch.Tensor
    ) -> torch.Tensor:
        """Gradients of sums of losses, shape (k, p).

        Parameters
        ----------
        flats : torch.Tensor, shape (k, p)
        x : torch.Tensor, shape (k, m, features)
        y : torch.Tensor, shape (k, m)
        held : torch.Tensor, shape (k, m)
            1 of records that count, 0 of others.
        """

        def total(flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
            return (self.losses(flat, x, y) * held).sum()

        func = self._torch.func
        result: torch.Tensor = func.vmap(func.grad(total))(flats, x, y, held)
        return result

    def clipped(
        self,
        flats: torch.Tensor,
        x: torch.Tensor,
        y: torch.Tensor,
        held: torch.Tensor,
        clip: float,
        order: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums of clipped gradients, shape (k, p), and the largest norms before clipping, shape (k,)."""
        torch = self._torch
        if len(flats) == 1:
            gradients = self.gradients(flats[0], x[0], y[0])[None]
        else:
            gradients = torch.func.vmap(self.gradients)(flats, x, y)
        norms = torch.linalg.vector_norm(gradients, ord=order, dim=2)
        scales = clip / norms.clamp(min=clip) if np.isfinite(clip) else torch.ones_like(norms)
        return torch.einsum("kmp,km->kp", gradients, scales * held), (norms * held).max(dim=1).values


def array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array of float64 of its own."""
    values: np.ndarray = tensor.detach().numpy()
    return values.astype(np.float64)


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
