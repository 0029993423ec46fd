"""The effective number of neighbours of gossip averaging (Vogels, Hendrikx and Jaggi 2022, "Beyond spectral gap").

Let agents do x ← W(√γ·x) + ξ, with fresh noise ξ of variance one in every round. The variance of x settles at 1/(1 − γ)
where nobody mixes, W = I, and averaging lowers it: its mean over agents is (1/n)·Σ_t γᵗ·‖Wᵗ‖_F². The ratio of the two,

    n_W(γ) = (1/(1 − γ)) / ((1/n)·Σ_t γᵗ·‖Wᵗ‖_F²),

is how many agents an agent averages with, itself included, while noise is remembered for about 1/(1 − γ) rounds. It is
1 without mixing, and near n where everyone averages with everyone and γ is near 1. For a symmetric W the variance is
the mean of 1/(1 − γλ²) over its eigenvalues λ. Where W changes from round to round, Wᵗ is the product of the last t
rounds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from p2psim.core.errors import InputError
from p2psim.core.printing import exact
from p2psim.core.process import one_thread
from p2psim.network.graph import Graph
from p2psim.network.mixing import mixing_matrix

#: Values of γ of the facts of a graph, and the most agents for which they are found.
FACTS, MOST = (0.9, 0.99), 1_000

#: Rows of a mixing matrix may miss one, and entries of a symmetric one each other, by so much: rounding.
_ROUNDING = 1e-9


def effective_neighbours(mixing: Any, gamma: float) -> float:
    """n_W(γ) of a mixing matrix, or of matrices that are applied one a round, in turn and for ever.

    Of several matrices, the variance is the mean over the rounds of a turn, once it has settled.

    Parameters
    ----------
    mixing : array_like or sparse array, shape (n, n), or a sequence of such
        W, whose entry (i, j) is the weight of j's model at i: rows sum to one, and no power of it grows.
    gamma : float
        γ, at least 0 and less than 1.

    Returns
    -------
    float
        At most n where W is doubly stochastic.

    Raises
    ------
    InputError
        If γ or a matrix is not such.
    """
    if not 0 <= gamma < 1:
        raise InputError(f"gamma must be at least 0 and less than 1, got {exact(gamma)}")
    rounds = as_rounds(mixing)
    if len(rounds) == 1 and is_symmetric(rounds[0]):
        values = np.linalg.eigvalsh(rounds[0])
        _refuse_growth(float(np.abs(values).max()))
        variance = float(np.mean(1 / (1 - gamma * values**2)))
    else:
        variance = _variance(rounds, gamma)
    return 1 / (1 - gamma) / variance


def neighbour_facts(links: Graph) -> dict[str, float]:
    """n_W(γ) of a graph of agents at two values of γ, for W by Metropolis weights; nothing above 1,000 agents.

    Returns
    -------
    dict
        ``effective_neighbours_90`` and ``effective_neighbours_99``, of γ = 0.9 and 0.99.
    """
    if links.star or links.agents > MOST:
        return {}
    with one_thread():  # last digits must not depend on the number of threads
        mixing = mixing_matrix(links, "metropolis")
        names = {f"effective_neighbours_{gamma * 100:.0f}": gamma for gamma in FACTS}
        return {name: effective_neighbours(mixing, gamma) for name, gamma in names.items()}


def as_rounds(mixing: Any) -> list[np.ndarray]:
    """Mixing matrices of the rounds as full arrays, one where there is one.

    Raises
    ------
    InputError
        If they are not square and of one size, not finite, or have rows that do not sum to one.
    """
    is_list = isinstance(mixing, Sequence | np.ndarray) and len(mixing) > 0
    several = is_list and np.ndim(_full(mixing[0])) == 2
    rounds = [np.asarray(_full(each), dtype=np.float64) for each in (mixing if several else [mixing])]
    for matrix in rounds:
        shape = matrix.shape
        if len(shape) != 2 or shape != (len(rounds[0]),) * 2 or not matrix.size:
            raise InputError(f"mixing matrices must be square and of one size, got one of shape {shape}")
        if not np.isfinite(matrix).all():
            raise InputError("mixing matrices must hold finite numbers")
        sums = matrix.sum(axis=1)
        if (np.abs(sums - 1) > _ROUNDING).any():
            row = int(np.abs(sums - 1).argmax())
            raise InputError(f"rows of mixing matrices must sum to 1; row {row} sums to {exact(sums[row])}")
    return rounds


def is_symmetric(matrix: np.ndarray) -> bool:
    """Whether a matrix is symmetric up to rounding."""
    return bool(np.allclose(matrix, matrix.T, rtol=0, atol=1e-12))


def one_peer_exponential(agents: int) -> list[np.ndarray]:
    """Rounds of the one-peer exponential graph: in round k an agent takes the mean of its model and that of i − 2ᵏ.

    (Ying and others 2021.) For a power of two of agents the product of all rounds is the mean of all models.

    Parameters
    ----------
    agents : int
        At least 2; indices are modulo this, and 2ᵏ is less.
    """
    if agents < 2:
        raise InputError(f"the one-peer exponential graph takes at least 2 agents, got {agents}")
    identity = np.eye(agents)
    return [(identity + np.roll(identity, 1 << k, axis=0)) / 2 for k in range((agents - 1).bit_length())]


def _full(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def _refuse_growth(radius: float) -> None:
    if radius > 1 + _ROUNDING:
        raise InputError(f"powers of the mixing matrix grow: its spectral radius is {radius:g}, above 1")


def _variance(rounds: Sequence[np.ndarray], gamma: float) -> float:
    """Mean over agents and rounds of the settled variance: X ← I + γ·W X Wᵀ."""
    from scipy.linalg import solve_discrete_lyapunov

    n = len(rounds[0])
    identity = np.eye(n)
    product, one = identity, np.zeros((n, n))
    for matrix in rounds:
        product, one = matrix @ product, identity + gamma * matrix @ one @ matrix.T
    _refuse_growth(float(np.abs(np.linalg.eigvals(product)).max()))
    settled = solve_discrete_lyapunov(gamma ** (len(rounds) / 2) * product, one)
    traces = []
    for matrix in rounds:
        settled = identity + gamma * matrix @ settled @ matrix.T
        traces.append(np.trace(settled) / n)
    return float(np.mean(traces))
