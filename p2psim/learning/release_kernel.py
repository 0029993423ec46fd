"""The gradient of a release on a graph, for compiled kernels: of all records of an agent, or of a batch of them."""

import numpy as np

from p2psim.compiled import njit
from p2psim.learning.batch_kernel import batch_gradient
from p2psim.learning.graph_loss import EXCEEDED, UNKNOWN, evaluate
from p2psim.learning.violation_kernel import longest_gradient


@njit()
def release_gradient(  # type: ignore[no-untyped-def]
    loss, X, y, norms, offsets, clip, batch, bound, theta, i, release, known, gradients
):
    """Find an agent's gradient at its model, unless it is ``known``, and write it to ``gradients``.

    ``batch`` is None where all records take part, else `p2psim.learning.batches.Sampling.for_kernel`. Which of the two
    is settled when this is compiled.

    Returns the norm of the longest gradient of a record, if that exceeds ``bound``, else 0. Every record counts, in the
    batch or not: what a release may cost is that of what could have been drawn.
    """
    first, last = offsets[i], offsets[i + 1]
    if batch is not None:
        batch_gradient(loss, X, y, norms, first, last, clip, theta[i], batch, i, release, gradients[i])
        if bound == np.inf:
            return 0.0
    else:
        if known[i] == UNKNOWN:
            _, known[i] = evaluate(loss, X, y, norms, first, last, clip, bound, theta[i], gradients[i])
        if known[i] != EXCEEDED:
            return 0.0
    longest = longest_gradient(loss, X, y, norms, None, first, last, theta[i])
    return longest if longest > bound else 0.0
