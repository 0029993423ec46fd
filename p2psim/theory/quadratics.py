"""Exact rates of decentralised SGD on random quadratics, by the recursion of second moments.

The loss of a draw is f(x) = ½(dᵀx)², with E ddᵀ = I and E ‖d‖²ddᵀ = ζI (ζ = p + 2 for a Gaussian d in p dimensions).
All agents draw independently. With C_ij = E x_iᵀx_j, a step of size η along the gradients changes C to

    Y = (1 − η)²·C + η²(ζ − 1)·diag(C),

and mixing by W changes it to WCWᵀ. Both are exact, whatever else the distribution of d is. Where the gradient is taken
at the model before mixing and subtracted after it (Lian and others 2017), a round is

    C ← WCWᵀ − η(WC + CWᵀ) + η²(C + (ζ − 1)·diag(C)).

In the long run second moments shrink in each round by the spectral radius of this linear map; the *rate* is one less
that radius. All draws have the same optimum, x = 0, so that a constant step converges.

Where W treats all agents alike (a ring, a hypercube, a complete graph), the radius ρ = 1 − rate of the sequential
orders follows from the effective number of neighbours alone (`p2psim.theory.neighbours`): with γ = (1 − η)²/ρ,

    1/((1 − γ)·n_W(γ)) = 1 + (1 − η)²/(η²(ζ − 1)).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from p2psim.core.errors import InputError, SimulationError
from p2psim.core.printing import exact
from p2psim.theory.neighbours import as_rounds

#: What comes first in a round, as ``learning.algorithm.order`` names it.
Order = Literal["gossip-then-gradient", "gradient-then-gossip", "together"]

#: Up to so many agents the map is a full matrix; above, its largest eigenvalue is found by iteration.
_DENSE = 8

#: Steps of the search for the best step size are within this ratio.
_PRECISION = 1e-4


class BestStep(NamedTuple):
    """The step size with the largest rate.

    Attributes
    ----------
    step, rate : float
    """

    step: float
    rate: float


def noise_of_batches(zeta: float, batch: int) -> float:
    """ζ of the mean of independent draws: 1 + (ζ − 1)/batch.

    Parameters
    ----------
    zeta : float
        ζ of one draw, at least 1.
    batch : int
        How many draws each gradient is the mean of.
    """
    if batch < 1:
        raise InputError(f"a batch has at least one draw, got {batch}")
    return 1 + (_checked(zeta) - 1) / batch


def rate_alone(step: float, zeta: float) -> float:
    """Rate of one agent alone, 2η − ζη²; largest, 1/ζ, at η = 1/ζ. Negative where second moments grow."""
    return 2 * step - _checked(zeta) * step**2


def round_of(moments: np.ndarray, mixing: np.ndarray, step: float, zeta: float, order: Order) -> np.ndarray:
    """C after a round.

    Parameters
    ----------
    moments : ndarray, shape (n, n)
        C, summed over the coordinates of a model.
    mixing : ndarray, shape (n, n)
        W.
    step : float
        η.
    zeta : float
        ζ.
    order : {"gossip-then-gradient", "gradient-then-gossip", "together"}
    """
    own = np.diag((zeta - 1) * step**2 * np.diag(moments))
    if order == "gradient-then-gossip":
        return np.asarray(mixing @ ((1 - step) ** 2 * moments + own) @ mixing.T)
    mixed = mixing @ moments @ mixing.T
    if order == "gossip-then-gradient":
        return np.asarray((1 - step) ** 2 * mixed + np.diag((zeta - 1) * step**2 * np.diag(mixed)))
    half = mixing @ moments
    return np.asarray(mixed - step * (half + moments @ mixing.T) + step**2 * moments + own)


def path(
    mixing: Any, step: float, zeta: float, first: np.ndarray, order: Order = "gossip-then-gradient"
) -> Iterator[np.ndarray]:
    """C before the first round and after each, without end.

    Parameters
    ----------
    mixing : array_like, shape (n, n), or a sequence of such
        W; several are taken in turn.
    step, zeta, order
        As in `round_of`.
    first : ndarray, shape (n, n)
        C of the first models.
    """
    rounds, moments = _rounds(mixing, step, zeta, order), np.array(first, dtype=np.float64)
    if moments.shape != rounds[0].shape:
        raise InputError(f"first moments must have shape {rounds[0].shape}, got {moments.shape}")
    while True:
        for matrix in rounds:
            yield moments
            moments = round_of(moments, matrix, step, zeta, order)


def rate(mixing: Any, step: float, zeta: float, order: Order = "gossip-then-gradient") -> float:
    """One less the factor by which second moments shrink in a round, in the long run.

    Of several matrices, the factor is the geometric mean over the rounds of a turn. Both sequential orders have the
    same rate, since they are the same operations, begun at another place.

    Parameters
    ----------
    mixing, step, zeta, order
        As in `path`.

    Returns
    -------
    float
        Negative where second moments grow.

    Raises
    ------
    InputError
        If a matrix or a number is not such, or there is no such order.
    SimulationError
        If the largest eigenvalue is not found.
    """
    rounds = _rounds(mixing, step, zeta, order)
    return 1 - _radius(rounds, step, zeta, order) ** (1 / len(rounds))


def best_step(mixing: Any, zeta: float, order: Order = "gossip-then-gradient") -> BestStep:
    """The step size of the largest rate, to a relative 1e-4.

    A golden-section search between half of 1/ζ, the best step of one agent alone, and 2, from where on means of models
    diverge. It takes the rate to have one maximum there.

    Parameters
    ----------
    mixing, zeta, order
        As in `path`.
    """
    section = (np.sqrt(5) - 1) / 2
    rounds = _rounds(mixing, 1.0, zeta, order)
    low, high = np.log(0.5 / zeta), np.log(2.0)

    def at(logarithm: float) -> float:
        return 1 - _radius(rounds, float(np.exp(logarithm)), zeta, order) ** (1 / len(rounds))

    left, right = high - section * (high - low), low + section * (high - low)
    of_left, of_right = at(left), at(right)
    while high - low > _PRECISION:
        if of_left > of_right:
            high, right, of_right = right, left, of_left
            left = high - section * (high - low)
            of_left = at(left)
        else:
            low, left, of_left = left, right, of_right
            right = low + section * (high - low)
            of_right = at(right)
    return BestStep(float(np.exp((low + high) / 2)), max(of_left, of_right))


def _checked(zeta: float) -> float:
    if not (np.isfinite(zeta) and zeta >= 1):
        raise InputError(f"zeta must be a number of at least 1 (of E ddᵀ = I), got {exact(zeta)}")
    return zeta


def _rounds(mixing: Any, step: float, zeta: float, order: Order) -> list[np.ndarray]:
    _checked(zeta)
    if not (np.isfinite(step) and step > 0):
        raise InputError(f"the step size must be a positive number, got {exact(step)}")
    if order not in get_args(Order):
        raise InputError(f"no order is called {order!r}: {', '.join(get_args(Order))}")
    return as_rounds(mixing)


def _radius(rounds: Sequence[np.ndarray], step: float, zeta: float, order: Order) -> float:
    """Spectral radius of a turn of rounds on second moments: an eigenvalue, since they stay positive semidefinite."""
    n = len(rounds[0])

    def turn(vector: np.ndarray) -> np.ndarray:
        moments = vector.reshape(n, n)
        for matrix in rounds:
            moments = round_of(moments, matrix, step, zeta, order)
        return moments.ravel()

    if n <= _DENSE:
        return float(np.abs(np.linalg.eigvals(np.array([turn(unit) for unit in np.eye(n * n)]))).max())
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    operator = LinearOperator((n * n, n * n), matvec=lambda vector: turn(vector.ravel()), dtype=np.float64)
    # The same at every call, and inside of the cone that has the eigenvector.
    start = (np.eye(n) + 1 / n).ravel()
    try:
        found = eigs(operator, k=1, which="LM", v0=start, ncv=24, maxiter=3000, return_eigenvectors=False)
    except ArpackNoConvergence:
        raise SimulationError(
            f"the largest eigenvalue of second moments of {n} agents was not found at step size {step:g}"
        ) from None
    return float(np.abs(found[0]))
