"""What an owner of a star computes: the mean gradient of its records, its check, and its noise; compiled."""

from p2psim.compiled import njit
from p2psim.learning.batch_kernel import batch_gradient
from p2psim.learning.grid_kernel import snapped
from p2psim.learning.losses.compiled import slope
from p2psim.learning.violation_kernel import longest_gradient, note_violation

#: How a mean gradient is computed: from the sums over records, or record by record.
FROM_SUMS, FROM_RECORDS = 0, 1


@njit()
def mean_gradient_from_sums(gram, moment, theta, out):  # type: ignore[no-untyped-def]
    """2(Gθ − c): the squared loss's mean gradient, without clipping."""
    p = theta.size
    for a in range(p):
        s = -moment[a]
        for d in range(p):
            s += gram[a, d] * theta[d]
        out[a] = 2.0 * s


@njit()
def mean_gradient_from_records(loss, X, y, norms, first, last, clip, theta, out):  # type: ignore[no-untyped-def]
    """Mean over an owner's records of their gradients, each clipped to a norm of ``clip``: that of ``norms`` of x."""
    p = theta.size
    out[:] = 0.0
    for r in range(first, last):
        z = 0.0
        for a in range(p):
            z += X[r, a] * theta[a]
        d = slope(loss, z, y[r])
        norm = abs(d) * norms[r]
        if norm > clip:
            d *= clip / norm
        if d != 0.0:
            for a in range(p):
                out[a] += d * X[r, a]
    for a in range(p):
        out[a] /= last - first


@njit()
def release(  # type: ignore[no-untyped-def]
    owner, number, commits, at, noise, out,
    how, loss, gram, moment, X, y, norms, offsets, clip, grid, batch, factor,
    suspects, suspect_offsets, bound, violations, violation_steps, violation_sizes,
):  # fmt: skip
    """Write one release of an owner at a model to ``out``, shape (p,): its mean gradient times a factor, with noise.

    ``batch`` is None where all records take part, else `p2psim.learning.batches.Sampling.for_kernel`. ``grid`` is None,
    or what a release is rounded to a multiple of.
    """
    # A batch of None is known when the kernel is compiled, and this question is not asked then.
    if batch is not None:
        batch_gradient(
            loss, X, y, norms, offsets[owner], offsets[owner + 1], clip, at, batch, owner, number, out
        )
    elif how == FROM_SUMS:
        mean_gradient_from_sums(gram[owner], moment[owner], at, out)
    else:
        mean_gradient_from_records(loss, X, y, norms, offsets[owner], offsets[owner + 1], clip, at, out)
    # Every record is looked at, in the batch or not: the loss is that of what could have been drawn.
    longest = longest_gradient(
        loss, X, y, norms, suspects, suspect_offsets[owner], suspect_offsets[owner + 1], at
    )
    if longest > bound:
        note_violation(owner, commits, longest / bound, violations, violation_steps, violation_sizes)
    for a in range(at.size):
        out[a] = snapped(factor * out[a] + noise[a], grid)


@njit(inline="always")
def project(value, theta_max):  # type: ignore[no-untyped-def]
    """A coordinate in Θ."""
    return min(max(value, -theta_max), theta_max)
