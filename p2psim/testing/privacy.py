"""What mechanisms, allocations and accountants must do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE, GAUSSIAN, LAPLACE, PURE
from p2psim.privacy.allocation import Allocation, StatedLosses
from p2psim.privacy.mechanisms import Mechanism
from p2psim.privacy.shares import UNLIMITED, Outlook, Releases
from p2psim.randomness import stream_key

#: Releases of an agent that are looked at, and coordinates of each.
MANY, WIDTH = 40, 3


def check_mechanism(part: Mechanism) -> Iterator[str]:
    """Yield what is wrong with a mechanism's draws, scales and sensitivities."""
    if str(part.norm) not in ("l1", "l2"):
        yield f"its norm is {part.norm!r}; must be 'l1' or 'l2'"
    if not all(hasattr(part.noise, name) for name in ("name", "delta")):
        yield "its noise has no name or no curve delta(losses, epsilon)"
    key, agents, numbers = stream_key(0, 0, "noise"), np.arange(MANY) % 7, np.arange(MANY) // 7
    unit = np.full((MANY, WIDTH), np.nan)
    part.fill_unit(key, agents, numbers, unit)
    if not np.isfinite(unit).all():
        yield "fill_unit draws what is no finite number, or leaves some numbers as they were"
        return
    order = np.random.default_rng(0).permutation(MANY)[: MANY // 2]
    some = np.full((order.size, WIDTH), np.nan)
    part.fill_unit(key, agents[order], numbers[order], some)
    if not np.array_equal(some, unit[order]):
        yield "a draw depends on which others are drawn with it, not on the key, the agent and the number alone"
    if not np.isfinite(part.of_scale(unit, np.full(MANY, 0.3))).all():
        yield "noise of scale 0.3 is no finite number"
    if np.any(part.of_scale(unit, np.zeros(MANY))):
        yield "noise of scale 0 is not 0"
    moved = np.array([0.0, 0.01, 0.5, 3.0])
    sensitivity = part.sensitivity_of(moved, WIDTH)
    if sensitivity.shape != moved.shape or sensitivity[0] != 0 or (sensitivity < moved).any():
        yield "sensitivity_of gives less than values move by, or something for values that do not move"


def check_allocation(part: Allocation) -> Iterator[str]:
    """Yield what is wrong with an allocation's limits and shares."""
    most = part.limit(1000, 0.02, 20.0)
    if not 0 <= most <= UNLIMITED:
        yield f"limit gives {most} releases"
        return
    count = int(min(most, MANY))
    none = np.zeros(count, np.int64)
    releases = Releases(none, np.arange(count), np.arange(count) * 50)
    outlook = Outlook(np.array([20.0]), np.array([50.0]), 0.99)
    if isinstance(part, StatedLosses):
        shares = part.stated_losses(releases.numbers)
    elif part.composed_by is None:
        shares = part.weights(releases, np.full(count, most), outlook, 1)
    else:
        return
    if shares.shape != (count,) or not (np.isfinite(shares) & (shares > 0)).all():
        yield f"the shares of {count} releases are not so many positive numbers"
    elif part.sums_to_one and not part.clairvoyant and shares.sum() > 1 + 1e-9:
        yield f"sums_to_one is set, and {count} shares add up to {shares.sum():g}"
    elif part.even and np.ptp(shares) > 0:
        yield "even is set, and shares differ"
    if part.clairvoyant and not np.isfinite(part.logarithms(releases, outlook, 1)).all():
        yield "logarithms gives what is no finite number"


def check_accountant(part: Accountant) -> Iterator[str]:
    """Yield what is wrong with an accountant's ε and δ on a few lists of releases."""
    if part.supports(_Unheard()) and part.name not in ("pld", "best"):
        yield "it says that it supports a noise of which nothing is known but its curve, which it cannot know"
    for noise in (LAPLACE, GAUSSIAN, PURE, DISCRETE_LAPLACE):
        if not part.supports(noise):
            continue
        one, two = Charges.of(noise, [0.3], [10]), Charges.of(noise, [0.3], [20])
        last = np.inf
        for delta in (1e-9, 1e-5, 1e-2):
            epsilon, more = float(part.epsilon(one, delta)[0]), float(part.epsilon(two, delta)[0])
            if epsilon > last:
                yield f"of {noise.name} noise ε grows with δ"
            if more < epsilon:
                yield f"of {noise.name} noise 20 releases cost less than 10"
            last = epsilon
            if np.isfinite(epsilon) and delta * (1 + 1e-6) < float(
                noise.delta(np.array(0.3), np.array(epsilon))
            ):
                yield f"of {noise.name} noise 10 releases have a smaller δ at ε = {epsilon:g} than one has"
            if np.isfinite(epsilon) and not 0 <= float(part.delta(one, epsilon)[0]) <= 1:
                yield f"of {noise.name} noise δ is no probability"


class _Unheard:
    """A noise that no accountant has heard of."""

    name = "unheard-of"

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """That of nothing known."""
        return np.ones(np.broadcast(losses, epsilon).shape)
