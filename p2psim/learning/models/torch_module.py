"""A PyTorch module as functions of a flat vector of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import Fault, MissingSourceError

if TYPE_CHECKING:
    import torch


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
        raise MissingSourceError(Fault('pip install "p2psim[torch]"', "learning.model")) from None
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
