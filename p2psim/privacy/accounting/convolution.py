"""The law of a sum of discretised losses, by a tilted Fourier transform with a proven bound on its rounding.

δ lies far in the tail of the sum, where the rounding of a plain transform would drown it. So every law is multiplied by
e^{λl} and normalised first: the tilted sum has its mean near the ε that is looked for, and rounding is small beside
what counts there. Laws are moved to have their tilted means near 0, so that no large exponents cancel.

What keeps the result from being too small:

- Rounding. A value of a transform of length N of weights that sum to 1 is wrong by at most e ≈ 8u·log₂N (Higham 2002,
  Theorem 24.2, along each path through the butterflies; u = 2^−53), to which the rounding of the weights themselves is
  added. With m_i equal laws of transform X_i, the product is wrong by at most Π(|X_i| + e)^m_i − Π|X_i|^m_i at each
  frequency, and a mass of the sum by the mean of that over frequencies, and by e times the mean of Π(|X_i| + e)^m_i for
  the transform back. This is added to every mass.
- The window. A transform wraps sums that leave the window around. Those from below land higher than they are, which
  raises δ. Those above the end x have the probability E_λ[e^{K − λS}; S > x] ≤ e^{K − λx}·P_λ(S > x), K the cumulant
  at λ, and P_λ(S > x) ≤ e^{K_λ(s) − sx} for every s > 0 (Chernoff). This is added at +∞.

Where the tilted sum is nearly normal, δ is sought near its mean, and the window is short, since all that is missed
counts with e^{−λS}. With the mean at 0, what is above the end counts e^{K_λ(s) − (s + λ)x} of e^K; and what wraps from
below a window of length N, E_λ[e^{−λ(S + N)}; −N < S < x − N] ≤ e^{K_λ(−s) − sN + max(s − λ, 0)·x}. Other windows hold
the sum.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from p2psim.privacy.accounting.grids import LossDistributions, from_above

#: Unit of rounding of double precision.
_UNIT = 2.0**-53
#: Logarithm of the probability that a window may miss on each side; of a short one, of the share of e^K at the mean.
_MISSED = 40.0
#: Standard deviations above the mean where what a short window misses is still little beside δ.
_ABOVE = 2.0
#: What cumulants may differ by from those of a normal law, of these, where a window is short.
NORMAL = 0.5
#: Numbers that are transformed at once: as many as a processor's cache holds with what becomes of them.
_AT_ONCE = 1 << 15
#: Exponents up to which weights of laws are e^{λl} itself times masses.
_MODEST = 4.0
#: Exponents up to which powers of e are numbers, and their sums with weights.
_SAFE = 300.0
#: Above this e^x is nearly infinite, and δ is 1.
_LARGE = 600.0


@dataclass(frozen=True)
class PrivacyProfile:
    """δ(ε) of one agent near some ε: a polygon in e^ε.

    Attributes
    ----------
    points : ndarray, shape (m,)
        ε, rising by equal steps.
    values : ndarray, shape (m,)
        δ there.
    image : ndarray, shape (m,)
        Mass above each point, under Q times e^ε: −δ' there, to the right.
    tilt, cumulant, beyond : float
        λ, K(λ) and the mass at +∞, which bound δ everywhere: (1 − e^{ε−L})₊ ≤ e^{λ(L−ε)}.
    rounding : float
        What δ holds for rounding, in units of e^{K − λε}.
    """

    points: np.ndarray
    values: np.ndarray
    image: np.ndarray
    tilt: float
    cumulant: float
    beyond: float
    rounding: float = 0.0

    def is_rough(self, epsilon: float, delta: float) -> bool:
        """Whether more than a hundredth of δ at ε is there for rounding alone, so that another tilt may be better."""
        if not np.isfinite(epsilon):
            return True
        exponent = self.cumulant - self.tilt * epsilon
        return bool(self.rounding * np.exp(min(exponent, _LARGE)) > 0.01 * delta)

    def delta(self, epsilon: float) -> float:
        """δ at ε; below the window by its bound alone."""
        if not self.points.size or epsilon < self.points[0]:
            exponent = self.cumulant - self.tilt * epsilon
            rounding = 8 * _UNIT * (abs(self.cumulant) + self.tilt * epsilon)
            return float(min(1.0, self.beyond + np.exp(min(exponent + rounding, 0.0))))
        j = int(np.searchsorted(self.points, epsilon, side="right")) - 1
        inside = self.values[j] - np.expm1(min(epsilon - self.points[j], _LARGE)) * self.image[j]
        # No more than a step to the right the polygon is at its next point.
        return float(max(inside, self.values[j + 1] if j + 1 < self.points.size else self.values[j]))

    def epsilon(self, delta: float) -> float:
        """Smallest ε with δ(ε) ≤ δ, at least 0; infinite if there is none in the window."""
        enough = np.flatnonzero(self.values <= delta)
        if not enough.size:
            return np.inf
        j = int(enough[0])
        found = float(self.points[j])
        if j:
            with np.errstate(divide="ignore"):
                inside = self.points[j - 1] + np.log1p((self.values[j - 1] - delta) / self.image[j - 1])
            found = min(found, float(inside))
        return max(0.0, found)


#: What says nothing.
NOTHING = PrivacyProfile(np.empty(0), np.empty(0), np.empty(0), 0.0, 0.0, 1.0)


class Window(NamedTuple):
    """A window of the grid.

    Attributes
    ----------
    above : int
        Steps from the centre to its end.
    size : int
        Its length.
    missed : float
        The tilted sum is above it with a probability of e^−missed at most.
    """

    above: int
    size: int
    missed: float


class Tilted:
    """Laws multiplied by e^{λl}, normalised, and moved by whole steps to have their means near 0.

    Parameters
    ----------
    laws : LossDistributions
    counts : ndarray, shape (u,)
        How often each law is a term of the sum; whole numbers.
    h : float
        The spacing.
    tilt : float
        λ, positive.
    """

    def __init__(self, laws: LossDistributions, counts: np.ndarray, h: float, tilt: float):
        self.laws, self.counts, self.h, self.tilt = laws, counts, h, tilt
        w = laws.width
        number = np.arange(-w, w + 1.0)
        if tilt * h * w <= _MODEST:
            grown = laws.mass * np.exp(tilt * h * number)
            sums = grown.sum(axis=1)
            self.weights = grown / sums[:, None]
            self.centres = np.rint(self.weights @ number).astype(np.int64)
            moved = tilt * h * self.centres
            logarithms, sizes = np.log(sums) - moved, np.abs(np.log(sums)) + np.abs(moved)
        else:
            with np.errstate(divide="ignore"):
                logs = np.log(laws.mass)
            rough = _normalised(logs + tilt * h * (number - w))[0]
            self.centres = np.rint(rough @ number).astype(np.int64)
            self.weights, logarithms = _normalised(logs + tilt * h * (number - self.centres[:, None]))
            sizes = np.abs(logarithms)
        #: K(λ) less λ times where the centres are together, and the size of what was added for it.
        self.cumulant = float(counts @ logarithms)
        self.rough_size = float(counts @ sizes)
        means = self.weights @ number
        self.mean = float(counts @ (means - self.centres)) * h
        # Squares about the centres, so that little cancels.
        squares = np.einsum("ij,ij->i", self.weights, (number - self.centres[:, None]) ** 2.0)
        self.variance = max(float(counts @ (squares - (means - self.centres) ** 2)), 0.0) * h * h
        #: Steps from 0 to where the centres are together, and from there to the ends of the sum.
        self.centre = float(counts @ self.centres)
        self.lowest, self.highest = float(counts @ (-w - self.centres)), float(counts @ (w - self.centres))

    @cached_property
    def window(self) -> Window:
        """Where the sum is taken to be."""
        factors = np.array([2.0, 6.0, 12.0, 36.0])
        s = factors / max(np.sqrt(self.variance) / self.h, 1e-3)
        powers, number = np.append(s, -s), np.arange(-self.laws.width, self.laws.width + 1.0)
        mean = self.mean / self.h
        # Cumulants of the tilted sum, less its mean.
        if powers.max() * self.laws.width < _SAFE:
            means = self.weights @ np.exp(np.multiply.outer(number, powers))
            moved = self.counts @ np.log(means)
        else:
            moved = np.array([cumulant(self.weights, number, self.counts, float(s)) for s in powers])
        up, down = (moved - powers * self.centre - powers * mean).reshape(2, -1)
        end, tilt = np.min((up + _MISSED) / s), self.tilt * self.h
        length = end + np.min((down + _MISSED) / s)
        if (np.abs(np.stack([up, down]) / (factors**2 / 2) - 1)[:, :2] < NORMAL).all():
            margin = _MISSED + _ABOVE * self.tilt * np.sqrt(self.variance)
            end = np.min((up + margin) / (s + tilt))
            length = min(length, np.min((down + _MISSED + np.maximum(s - tilt, 0.0) * end) / s))
        above = int(np.ceil(min(self.highest, mean + end)))
        size = int(np.ceil(min(above - self.lowest, length + 1))) + 1
        return Window(above, size, float(np.max(s * (above - mean) - up)))


def cumulant(mass: np.ndarray, places: np.ndarray, counts: np.ndarray, power: float) -> float:
    """Sum of the logarithms of E[e^{power·L}] over laws: masses by row, at the same places, or each law at its own.

    Places that are the same rise, and end as far above 0 as they begin below.
    """
    alike = places.ndim == 1
    if abs(power) * (places[-1] if alike else np.abs(places).max()) < _SAFE:
        grown = np.exp(power * places)
        means = mass @ grown if alike else np.einsum("ij,ij->i", mass, grown)
        return float(counts @ np.log(means))
    with np.errstate(divide="ignore"):
        return float(counts @ _normalised(np.log(mass) + power * places)[1])


def _normalised(exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights e^x by row, with sum 1, and the logarithms of what they were divided by."""
    peaks = exponents.max(axis=1, keepdims=True)
    weights = np.exp(exponents - peaks)
    sums = weights.sum(axis=1, keepdims=True)
    return weights / sums, (peaks + np.log(sums))[:, 0]


def curve(tilted: Tilted) -> PrivacyProfile:
    """δ(ε) of the sum, in a window that holds the tilted sum; nowhere below the exact one of the discretised laws."""
    from scipy.fft import next_fast_len

    h, window = tilted.h, tilted.window
    N = next_fast_len(window.size, real=True)
    mass, rounding = convolve(tilted, N)
    steps = np.arange(window.above - N + 1, window.above + 1)
    exponents = tilted.cumulant - tilted.tilt * h * steps
    kept = exponents < _LARGE
    if not kept.any():
        return NOTHING
    steps, exponents = steps[kept], exponents[kept]
    slack = 1 + 4 * _UNIT * (tilted.rough_size + np.abs(tilted.tilt * h * steps))
    p = np.exp(exponents) * (np.maximum(mass[steps % N], 0.0) + rounding) * slack
    # Masses that vanish as numbers are counted by the least that does not.
    lost = beyond = float(tilted.counts @ tilted.laws.beyond) + 1e-323 * p.size
    if steps[-1] < tilted.highest:
        beyond += float(np.exp(exponents[-1] - window.missed))
    # δ_j = beyond + (1 − e^{−h})·Σ_{i>j} V_i and V_j = Σ_{i≥j} p_i·e^{l_j − l_i}: sums of positive terms alone.
    V = np.append(from_above(p, float(np.exp(-h)))[1:], 0.0)
    values = beyond - np.expm1(-h) * np.cumsum(V[::-1])[::-1]
    moved = tilted.tilt * tilted.centre * h
    cumulant = tilted.cumulant + moved + 4 * _UNIT * (tilted.rough_size + abs(moved))
    share = rounding / -np.expm1(-tilted.tilt * h)
    return PrivacyProfile(
        (tilted.centre + steps) * h, values, np.exp(-h) * V, tilted.tilt, cumulant, lost, share
    )


def convolve(tilted: Tilted, N: int) -> tuple[np.ndarray, float]:
    """Law of the tilted sum modulo N, and the bound on the rounding of each of its masses."""
    from scipy.fft import irfft, rfft

    error = _UNIT * (8 * np.log2(N) + 64)
    product, bound = np.ones(N // 2 + 1, complex), np.ones(N // 2 + 1)
    every = tilted.weights
    if every.shape[1] > N:
        whole = np.pad(every, ((0, 0), (0, -every.shape[1] % N)))
        every = whole.reshape(len(whole), -1, N).sum(axis=1)
    rows = min(max(1, _AT_ONCE // N), tilted.counts.size)
    padded, room = np.zeros((rows, N)), np.empty((rows, N // 2 + 1))
    for start in range(0, tilted.counts.size, rows):
        counts = tilted.counts[start : start + rows]
        padded[: counts.size, : every.shape[1]] = every[start : start + rows]
        X = rfft(padded[: counts.size], axis=1)
        sizes = np.abs(X, out=room[: counts.size])
        sizes += error
        different = counts[:1] if (counts == counts[0]).all() else np.unique(counts)
        for count in different:
            equal = counts == count if different.size > 1 else slice(None)
            product *= _power(np.multiply.reduce(X[equal], axis=0), int(count))
            bound *= _power(np.multiply.reduce(sizes[equal], axis=0), int(count))
    size = np.abs(product)
    twice = np.full(N // 2 + 1, 2.0)
    twice[0] = 1.0
    if N % 2 == 0:
        twice[-1] = 1.0
    largest = float(twice @ bound) / N
    # Every law was transformed as if it began at 0.
    moved = np.mod(tilted.counts, N).astype(np.int64) @ np.mod(tilted.centres + tilted.laws.width, N)
    return np.roll(irfft(product, N), -(moved % N)), largest - float(twice @ size) / N + 2 * error * largest


def _power(values: np.ndarray, count: int) -> np.ndarray:
    """Whole powers by squaring, much faster than through logarithms; relative errors grow to 3u·count."""
    result = None
    while True:
        if count & 1:
            result = values if result is None else result * values
        count >>= 1
        if not count:
            assert result is not None
            return result
        values = values * values
