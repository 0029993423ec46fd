"""Privacy loss distributions: losses are discretised pessimistically and convolved by a tilted FFT.

The law of the sum of an agent's losses is needed far in its tail, where δ lies. So every law is multiplied by e^{λl}
and normalised first: the tilted sum has its mean near the ε that is looked for, where the transform's rounding is then
small beside what counts. λ + 1 is the order at which a Rényi bound is least.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.grids import Laws, laws, spread, together
from p2psim.privacy.accounting.noises import GAUSSIAN, GaussianNoise, Noise

#: Spacing of the grid by the root mean square of what the losses change on; and share of ε that the excess may have.
DEFAULT_SPACING, DEFAULT_EXCESS = 0.04, 3e-4
FINE_SPACING, FINE_EXCESS = 0.01, 1e-5

#: The window holds the tilted sum but for a probability of e^{−40} on each side.
_WINDOW = 40.0

#: Rows that are transformed at once.
_ROWS = 64


@dataclass(frozen=True)
class Released:
    """Different releases of one agent, and how often each was made."""

    noises: tuple[Noise, ...]
    losses: tuple[np.ndarray, ...]
    counts: np.ndarray

    def laws(self, h: float) -> Laws:
        """Discretise them; rows in the order of `counts`."""
        parts = [laws(noise, losses, h) for noise, losses in zip(self.noises, self.losses, strict=True)]
        return together(parts)

    @property
    def fineness(self) -> float:
        """Root mean square, over releases, of the scale on which a loss's law changes."""
        scales = np.concatenate(
            [
                [spread(noise, float(x)) for x in losses]
                for noise, losses in zip(self.noises, self.losses, strict=True)
            ]
        )
        return float(np.sqrt(np.average(scales**2, weights=self.counts)))


def released(charges: Charges) -> Released | None:
    """Releases of one agent, with equal ones counted and Gaussians composed to one; None if none has a loss."""
    noises, losses, counts = [], [], []
    for k in np.unique(charges.kind):
        noise, own = charges.noises[k], charges.loss[charges.kind == k]
        often = charges.counts[charges.kind == k]
        if isinstance(noise, GaussianNoise):
            own, often = np.array([np.sqrt((often * own**2).sum())]), np.ones(1)
        noises.append(noise)
        losses.append(own)
        counts.append(often)
    if not noises:
        return None
    return Released(tuple(noises), tuple(losses), np.concatenate(counts))


class Cumulants:
    """Cumulant generating function of the sum of discretised losses (of its finite part) under P."""

    def __init__(self, own: Laws, counts: np.ndarray, h: float):
        self._logs = np.log(np.maximum(own.mass, 1e-320))
        self._logs[own.mass <= 0] = -np.inf
        self._points = (own.first[:, None] + np.arange(own.mass.shape[1])[None, :]) * h
        self._counts = counts

    def tilted(self, tilt: float) -> tuple[np.ndarray, float]:
        """Tilted and normalised laws, shape (u, w), and K(λ)."""
        exponents = self._logs + tilt * self._points
        peaks = exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents - peaks)
        sums = weights.sum(axis=1, keepdims=True)
        return weights / sums, float(self._counts @ (peaks + np.log(sums))[:, 0])

    def moments(self, tilted: np.ndarray) -> tuple[float, float]:
        """Mean and variance of the tilted sum."""
        means = (tilted * self._points).sum(axis=1)
        squares = (tilted * (self._points - means[:, None]) ** 2).sum(axis=1)
        return float(self._counts @ means), float(self._counts @ squares)

    def least(self, objective: Callable[[float, float], float]) -> float:
        """The tilt λ > 0 at which a function of (λ, K(λ)) is least, nearly."""
        grid = np.linspace(np.log(1e-4), np.log(1e9), 40)

        def at(x: float) -> float:
            tilt = float(np.exp(x))
            return objective(tilt, self.tilted(tilt)[1])

        values = [at(x) for x in grid]
        best = int(np.argmin(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
        for _ in range(12):
            a, b = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, b) if at(a) < at(b) else (a, high)
        return float(np.exp((low + high) / 2))


def renyi_epsilon(tilt: float, cumulant: float, delta: float) -> float:
    """ε by order α = λ + 1 (Canonne, Kamath, Steinke 2020)."""
    return (cumulant - np.log(delta) - np.log1p(tilt)) / tilt + np.log(tilt) - np.log1p(tilt)


@dataclass(frozen=True)
class Curve:
    """δ(ε) of one agent near some ε: a polygon in e^ε.

    Attributes
    ----------
    points : ndarray, shape (m,)
        Rising.
    above, image : ndarray, shape (m,)
        Above each point, its mass under P, with that at +∞, and under Q times e^l of the point.
    """

    points: np.ndarray
    above: np.ndarray
    image: np.ndarray

    def at_points(self) -> np.ndarray:
        """δ at each point."""
        return self.above - self.image

    def delta(self, epsilon: float) -> float:
        """δ at ε; 1 below the window, which says nothing."""
        if epsilon < self.points[0]:
            return 1.0
        j = int(np.searchsorted(self.points, epsilon, side="right")) - 1
        return float(self.above[j] - np.exp(epsilon - self.points[j]) * self.image[j])

    def epsilon(self, delta: float) -> float:
        """Smallest ε with δ(ε) ≤ δ, at least 0; infinite if there is none in the window."""
        enough = np.flatnonzero(self.at_points() <= delta)
        if not enough.size:
            return np.inf
        j = int(enough[0])
        if j == 0:
            return max(0.0, float(self.points[0]))
        inside = self.points[j - 1] + np.log((self.above[j - 1] - delta) / self.image[j - 1])
        return max(0.0, float(np.clip(inside, self.points[j - 1], self.points[j])))


def curve(own: Released, h: float, objective: Callable[[float, float], float]) -> Curve:
    """δ(ε) around the ε at which a Rényi bound with the given objective is best."""
    from scipy.signal import lfilter

    discretised = own.laws(h)
    cumulants = Cumulants(discretised, own.counts, h)
    tilt = cumulants.least(objective)
    tilted, K = cumulants.tilted(tilt)
    mean, variance = cumulants.moments(tilted)
    width = discretised.mass.shape[1]
    # Bernstein's inequality, for losses that differ from their mean by no more than a row is wide.
    reach = width * h
    half = _WINDOW * reach / 3 + np.sqrt((_WINDOW * reach / 3) ** 2 + 2 * _WINDOW * variance)
    lowest, total = int(own.counts @ discretised.first), int(own.counts.sum())
    support = total * (width - 1) + 1
    size = min(int(2 * half / h) + 2, support)
    covers = size == support
    N = 1 << max(8, int(np.ceil(np.log2(size))))
    masses, rounding = _convolve(tilted, own.counts, N)
    # Where the window begins, in points above the lowest one of the sum.
    begin = 0 if covers else round(mean / h) - lowest - N // 2
    masses = np.roll(masses, -(begin % N))
    points = (lowest + begin + np.arange(N)) * h
    # Far below the mean e^{−λl} exceeds floating point, and δ is 1.
    exponents = K - tilt * points
    kept = exponents < 600
    points, exponents = points[kept], exponents[kept]
    p = np.exp(exponents) * (np.maximum(masses[kept], 0.0) + rounding)
    beyond = float(own.counts @ discretised.beyond)
    if not covers:
        beyond += float(np.exp(min(0.0, K - tilt * points[-1] - _WINDOW)))
    above = np.append(np.cumsum(p[::-1])[::-1][1:], 0.0) + beyond
    # Σ p_i·e^{l_j − l_i} over i > j, from the top downwards.
    fall = np.exp(-h)
    image = np.append(fall * lfilter([1.0], [1.0, -fall], p[::-1])[::-1][1:], 0.0)
    return Curve(points, above, image)


def _convolve(tilted: np.ndarray, counts: np.ndarray, N: int) -> tuple[np.ndarray, float]:
    """Law of the tilted sum modulo N, and a bound on the rounding of each of its masses."""
    from scipy.fft import irfft, rfft

    product = np.ones(N // 2 + 1, complex)
    for start in range(0, len(counts), _ROWS):
        rows, often = tilted[start : start + _ROWS], counts[start : start + _ROWS]
        pad = -rows.shape[1] % N
        folded = (
            np.pad(rows, ((0, 0), (0, pad))).reshape(len(rows), -1, N).sum(axis=1)
            if rows.shape[1] > N
            else rows
        )
        transforms = rfft(folded, N, axis=1)
        for k in np.unique(often):
            product *= np.prod(transforms[often == k], axis=0) ** int(k)
    # Each factor is right to about log₂N roundings; the inverse averages over frequencies.
    relative = 2.3e-16 * (int(counts.sum()) * np.log2(N) + 2 * np.log2(N))
    rounding = relative * float(np.abs(product).mean()) + 1e-17 / N
    return irfft(product, N), rounding


def _spacing(own: Released, objective: Callable[[float, float], float], fine: bool) -> float:
    """Spacing of the grid at which the excess over the exact ε is small.

    Splitting raises K by about λ(λ + 1)·h²/8 a release at most, and ε by that over λ.
    """
    spacing, excess = (FINE_SPACING, FINE_EXCESS) if fine else (DEFAULT_SPACING, DEFAULT_EXCESS)
    first = 4 * spacing * own.fineness
    cumulants = Cumulants(own.laws(first), own.counts, first)
    tilt = cumulants.least(objective)
    mean, _ = cumulants.moments(cumulants.tilted(tilt)[0])
    total = float(own.counts.sum())
    by_excess = np.sqrt(8 * excess * max(mean, 0.1 * own.fineness) / ((tilt + 1) * total))
    return float(min(spacing * own.fineness, by_excess))


def epsilon_of(own: Released, delta: float, fine: bool = False) -> float:
    """ε at δ of one agent's releases."""
    if len(own.noises) == 1 and isinstance(own.noises[0], GaussianNoise):
        from p2psim.privacy.accounting.gaussian import gaussian_epsilon

        return float(gaussian_epsilon(own.losses[0], delta)[0])

    def objective(tilt: float, cumulant: float) -> float:
        return renyi_epsilon(tilt, cumulant, delta)

    return curve(own, _spacing(own, objective, fine), objective).epsilon(delta)


def delta_of(own: Released, epsilon: float, fine: bool = False) -> float:
    """δ at ε of one agent's releases."""
    if len(own.noises) == 1 and isinstance(own.noises[0], GaussianNoise):
        return float(GAUSSIAN.delta(own.losses[0], np.array([epsilon]))[0])

    def objective(tilt: float, cumulant: float) -> float:
        return cumulant - tilt * epsilon

    return min(1.0, curve(own, _spacing(own, objective, fine), objective).delta(epsilon))


def _by_agent(charges: Charges, measure: Callable[[Released], float], nothing: float) -> np.ndarray:
    """A number of each agent, found once for agents whose releases are the same."""

    def one(agent: int) -> float:
        own = released(charges.alone(agent))
        return nothing if own is None else measure(own)

    agents = range(charges.agents)
    if len(agents) < 2:
        return np.array([one(agent) for agent in agents])
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        return np.array(list(pool.map(one, agents)))


def accountant(fine: bool) -> Accountant:
    """Accountant by loss distributions; the fine one has a third of the spacing."""
    return Accountant(
        "pld",
        "loss distributions of the noise itself, discretised pessimistically (Doroshenko et al. 2022), by FFT",
        lambda noise: isinstance(noise, Noise),
        True,
        lambda charges, delta: _by_agent(charges, lambda own: epsilon_of(own, delta, fine), 0.0),
        lambda charges, epsilon: _by_agent(charges, lambda own: delta_of(own, epsilon, fine), 0.0),
    )


ACCOUNTANT = accountant(fine=False)
FINE = accountant(fine=True)
