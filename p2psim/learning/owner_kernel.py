"""What an owner of a star computes: the mean gradient of its records, and its check; compiled."""

from p2psim.compiled import njit
from p2psim.learning.batch_kernel import batch_gradient
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
def answer(  # type: ignore[no-untyped-def]
    owner, number, commits, at, mean,
    how, loss, gram, moment, X, y, norms, offsets, clip, batch,
    suspects, suspect_offsets, bound, violations, violation_steps, violation_sizes,
):  # fmt: skip
    """Write the mean gradient of an owner's records at a model to ``mean``, shape (p,), and check the claimed bound.

    ``batch`` is None where all records take part in a release, else `p2psim.learning.batches.Sampling.for_kernel`.
    """
    # A batch of None is known when the kernel is compiled, and this question is not asked then.
    if batch is not None:
        batch_gradient(
            loss, X, y, norms, offsets[owner], offsets[owner + 1], clip, at, batch, owner, number, mean
        )
    elif how == FROM_SUMS:
        mean_gradient_from_sums(gram[owner], moment[owner], at, mean)
    else:
        mean_gradient_from_records(loss, X, y, norms, offsets[owner], offsets[owner + 1], clip, at, mean)
    # Every record is looked at, in the batch or not: the loss is that of what could have been drawn.
    longest = longest_gradient(
        loss, X, y, norms, suspects, suspect_offsets[owner], suspect_offsets[owner + 1], at
    )
    if longest > bound:
        note_violation(owner, commits, longest / bound, violations, violation_steps, violation_sizes)


@njit(inline="always")
def project(value, theta_max):  # type: ignore[no-untyped-def]
    """A coordinate in Θ."""
    return min(max(value, -theta_max), theta_max)
