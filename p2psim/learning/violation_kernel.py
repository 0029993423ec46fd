"""How far records exceed a bound on their gradients that was claimed, for compiled kernels."""

from p2psim.compiled import njit
from p2psim.learning.losses.compiled import slope


@njit()
def longest_gradient(loss, X, y, norms, rows, first, last, theta):  # type: ignore[no-untyped-def]
    """Largest norm of a gradient among records; 0 without records.

    They are ``rows[first:last]``, or, where ``rows`` is None, ``first`` to ``last`` themselves.
    """
    longest = 0.0
    for k in range(first, last):
        r = k
        if rows is not None:
            r = rows[k]
        z = 0.0
        for a in range(theta.size):
            z += X[r, a] * theta[a]
        longest = max(longest, abs(slope(loss, z, y[r])) * norms[r])
    return longest


@njit()
def note_violation(agent, step, size, violations, steps, sizes):  # type: ignore[no-untyped-def]
    """Count a release where a gradient was ``size`` times the bound; keep the first step and the largest size."""
    if violations[agent] == 0:
        steps[agent] = step
    violations[agent] += 1
    sizes[agent] = max(sizes[agent], size)
