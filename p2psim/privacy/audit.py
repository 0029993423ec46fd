"""Statistics of audits, which test whether what a mechanism shows of its data fits its claim, and tests of noise.

A claim is a curve δ(e): for every set S of outputs and adjacent data sets P and Q, P(S) − e^e·Q(S) ≤ δ(e). An audit
runs the mechanism on both, counts how often its outputs fall into a set, and rejects the claim when the inequality
fails beyond chance. Any set will do for this to be sound; the best ones are those where the claimed log-likelihood
ratio exceeds e (Neyman and Pearson), so scores are such ratios, and bad scores cost power alone.

The bounds on probabilities are those of Clopper and Pearson (1934), exact for every number of samples; all bounds of
one audit hold together with probability 1 − γ at least, by Bonferroni. As it is not the samples that choose the
thresholds, no correction for choosing is due.

An audit also tests noise itself: that it follows its law, and that none of it is used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: Digits after the point to which a score is rounded. In floating point the sums in a Laplace score betray by their
#: last bits which data set they came from, so that exact comparison rejects even the right mechanism.
DIGITS = 9


@dataclass(frozen=True)
class Canary:
    """Scores of outputs on two adjacent data sets.

    Attributes
    ----------
    name : str
        How the two differ.
    p, q : ndarray, shape (samples,)
        Claimed log-likelihood ratios of P to Q, of independent outputs on P and on Q.
    """

    name: str
    p: np.ndarray
    q: np.ndarray


@dataclass(frozen=True)
class Finding:
    """What one set S = {score > e} says.

    Attributes
    ----------
    canary : str
    threshold : float
        e.
    p_low, q_up : float
        Bounds P(S) ≥ p_low and Q(S) ≤ q_up.
    claimed : float
        δ(e).
    """

    canary: str
    threshold: float
    p_low: float
    q_up: float
    claimed: float

    @property
    def shown(self) -> float:
        """Lower bound on P(S) − e^e·Q(S), and so on the true δ(e)."""
        return float(self.p_low - np.exp(self.threshold) * self.q_up)

    @property
    def rejects(self) -> bool:
        """Whether the true δ(e) exceeds the claimed one."""
        return self.shown > self.claimed

    def epsilon(self, delta: float) -> float:
        """Lower bound on the ε of the mechanism at δ: P(S) ≤ e^ε·Q(S) + δ. Zero where the set shows nothing."""
        over = self.p_low - delta
        return float(max(0.0, np.log(over / self.q_up))) if over > 0 else 0.0


def clopper_pearson(hits: int, samples: int, alpha: float) -> tuple[float, float]:
    """Bounds on a probability from independent trials, each of which is wrong with probability at most alpha.

    Parameters
    ----------
    hits, samples : int
        0 ≤ hits ≤ samples, samples ≥ 1.
    alpha : float
        In (0, 1).

    Returns
    -------
    lower, upper : float
        Quantiles of Beta(hits, samples − hits + 1) and Beta(hits + 1, samples − hits).
    """
    from scipy.special import betaincinv

    lower = 0.0 if hits == 0 else float(betaincinv(hits, samples - hits + 1, alpha))
    # The complement keeps its digits where 1 − alpha would round to one.
    upper = 1.0 if hits == samples else 1.0 - float(betaincinv(samples - hits, hits + 1, alpha))
    return lower, upper


def findings(
    canaries: Sequence[Canary],
    delta_of: Callable[[float], float],
    thresholds: Sequence[float],
    gamma: float,
    cuts: Sequence[float] | None = None,
) -> tuple[Finding, ...]:
    """Look at all canaries and thresholds, with bounds that hold together with probability 1 − γ at least.

    Parameters
    ----------
    canaries : sequence of Canary
        With two of them and three thresholds there are twelve bounds.
    delta_of : callable
        The claim: δ(e) for e ≥ 0.
    thresholds : sequence of float
        e, not negative; fixed before the scores are seen. Low ones see most: at e = 0 noise of .9 times its scale is
        found in nearly all audits, at e = 3.7 in few.
    gamma : float
        In (0, 1).
    cuts : sequence of float, optional
        Where scores are cut for each e: S = {score > cut}; at e itself when left out. Fixed beforehand as well.
    """
    alpha = gamma / (2 * len(thresholds) * len(canaries))
    claimed = [float(delta_of(e)) for e in thresholds]
    sets = []
    for canary in canaries:
        p, q = np.round(canary.p, DIGITS), np.round(canary.q, DIGITS)
        for e, cut, delta in zip(thresholds, thresholds if cuts is None else cuts, claimed, strict=True):
            p_low, _ = clopper_pearson(int((p > cut).sum()), p.size, alpha)
            _, q_up = clopper_pearson(int((q > cut).sum()), q.size, alpha)
            sets.append(Finding(canary.name, float(e), p_low, q_up, delta))
    return tuple(sets)


def lower_bound(sets: Sequence[Finding], delta: float) -> float:
    """Lower confidence bound on the ε of the mechanism at δ, zero where nothing is shown.

    Parameters
    ----------
    sets : sequence of Finding
        From `findings`; all their bounds hold together with probability 1 − γ.
    delta : float
        In [0, 1).
    """
    return max((finding.epsilon(delta) for finding in sets), default=0.0)


def thresholds_for(losses: np.ndarray) -> tuple[float, float, float]:
    """Where to cut the scores of releases with the given claimed losses: e = 0, s/2 and s, s = min(1, ‖losses‖₂).

    Low, as theory asks; above 0 too, since a few releases of pure noise exceed their claim most near the largest loss
    that is claimed, where δ(e) vanishes.

    Parameters
    ----------
    losses : ndarray, shape (releases,)
    """
    s = min(1.0, float(np.sqrt((losses**2).sum())))
    return 0.0, s / 2, s


#: Intervals of an estimated density; minus its logarithm beyond what was seen; and what counts as the same value.
_INTERVALS, _IMPOSSIBLE, _SAME = 64, 50.0, 1e-6


@dataclass(frozen=True)
class NoiseDistribution:
    """The law of one coordinate's noise.

    Attributes
    ----------
    distance : callable
        Of noise of scale one, minus its log-density up to a constant: |x| for Laplace, x²/2 for Gaussian noise.
    cumulative : callable, optional
        Its distribution function, of noise of scale one and of the grid's step in units of the scale (0 for no grid);
        None where it is not known.
    """

    distance: Callable[[np.ndarray], np.ndarray]
    cumulative: Callable[[np.ndarray, np.ndarray], np.ndarray] | None


def _laplace(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """With k whole steps: a^{−k}/(1 + a) below zero, 1 − a^{k + 1}/(1 + a) from there on, a = exp(−step)."""
    tail = np.exp(-np.where(x < 0, -x, x + step)) / (1.0 + np.exp(-step))
    return np.where(x < 0, tail, 1.0 - tail)


def _gaussian(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def _half_square(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * x * x)


LAPLACE = NoiseDistribution(np.abs, _laplace)
GAUSSIAN = NoiseDistribution(_half_square, _gaussian)


def probabilities(
    law: NoiseDistribution, noise: np.ndarray, step: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Distribution function at noise, in units of its scale: independent and uniform on [0, 1] if the law is right.

    On a grid it is spread evenly over each jump, F(k − 1) + V·(F(k) − F(k − 1)) with V uniform, which is uniform for
    every law on the whole numbers: Kolmogorov and Smirnov's test is for continuous laws.

    Parameters
    ----------
    law : NoiseDistribution
        One whose distribution function is known.
    noise, step : ndarray, shape (n,)
        ``step`` is that of the grid; 0 for no grid.
    rng : Generator
    """
    assert law.cumulative is not None
    on_grid = step > 0
    whole = np.where(on_grid, np.rint(noise / np.where(on_grid, step, 1.0)) * step, noise)
    upto = law.cumulative(whole, step)
    if not on_grid.any():
        return upto
    below = law.cumulative(whole - step, step)
    return np.asarray(below + np.where(on_grid, rng.random(noise.size), 1.0) * (upto - below))


def log_ratio(
    law: NoiseDistribution, seen: np.ndarray, mean_p: np.ndarray, mean_q: np.ndarray, rate: float = 1.0
) -> np.ndarray:
    """Claimed log-likelihood ratio of P to Q at what is seen of some releases.

    Parameters
    ----------
    law : NoiseDistribution
    seen : ndarray, shape (samples, releases, p)
        In units of the claimed scale, as all arrays.
    mean_p, mean_q : ndarray, broadcast to the shape of ``seen``
        What would be seen on P and on Q without noise, given what was seen before.
    rate : float
        Probability q in (0, 1] that a record is in a release's batch. Others have no gradient here, so that a release
        without it is noise alone: its density is (1 − q)·f(x) + q·f(x − mean).

    Returns
    -------
    ndarray, shape (samples, releases)
        Of each release given those before it; the ratio of all is their sum.
    """
    to_p, to_q = (-law.distance(seen - mean).sum(axis=2) for mean in (mean_p, mean_q))
    if rate < 1:
        without = np.log1p(-rate) - law.distance(seen).sum(axis=2)
        to_p, to_q = (np.logaddexp(without, np.log(rate) + with_it) for with_it in (to_p, to_q))
    return np.asarray(to_p - to_q)


def learned(noise: np.ndarray) -> NoiseDistribution:
    """Estimate the law of noise from a part of the samples, for scores of the others: its density, and where it ends.

    The density is that of intervals with equally many values each, its logarithm interpolated between their middles.
    Beyond the values that were seen it is taken to be nearly 0, so that outcomes that one data set makes impossible
    have extreme scores. A bad estimate costs power alone.

    Parameters
    ----------
    noise : ndarray
        In units of its claimed scale.
    """
    values = np.unique(np.round(noise.ravel(), 12))
    if values.size < 2:  # no noise at all: what is seen tells all
        return NoiseDistribution(lambda x: np.where(np.abs(x - values[0]) < _SAME, 0.0, _IMPOSSIBLE), None)
    edges = np.unique(np.quantile(noise, np.linspace(0.0, 1.0, _INTERVALS + 1)))
    counts = np.histogram(noise, edges)[0]
    logs = np.log(np.maximum(counts, 0.5) / noise.size) - np.log(np.diff(edges))
    middles = (edges[1:] + edges[:-1]) / 2
    room = _SAME * (edges[-1] - edges[0])

    def distance(x: np.ndarray) -> np.ndarray:
        inside = (x >= edges[0] - room) & (x <= edges[-1] + room)
        return np.where(inside, -np.interp(x, middles, logs), _IMPOSSIBLE)

    return NoiseDistribution(distance, None)


def uniform_p_value(values: np.ndarray) -> float:
    """P-value of Kolmogorov and Smirnov's test that values are independent and uniform on [0, 1].

    Parameters
    ----------
    values : ndarray, shape (n,)
        Distribution function at the noise.
    """
    from scipy.stats import kstest

    return float(kstest(values, "uniform", method="exact").pvalue)


@dataclass(frozen=True)
class Shared:
    """The two columns whose signs agree, or disagree, most.

    Attributes
    ----------
    first, second : int
    agreement : float
        Share of samples in which their signs are the same.
    p_value : float
        That any two of independent symmetric columns do so; corrected for all pairs.
    """

    first: int
    second: int
    agreement: float
    p_value: float


def most_shared(noise: np.ndarray) -> Shared | None:
    """Find noise that is used twice: by two releases, two agents, or two coordinates.

    If noise is symmetric and independent, the signs of two columns agree in half of the samples, whatever the scales:
    with n samples, of which none is zero, Σ sign·sign is a sum of n independent signs, and exceeds t in absolute value
    with probability at most 2·exp(−t²/(2n)) (Hoeffding 1963). Noise that is shared, or shared with the other sign,
    gives n.

    Parameters
    ----------
    noise : ndarray, shape (samples, columns)
        A column for each agent, release and coordinate.

    Returns
    -------
    Shared or None
        None for fewer than two columns.
    """
    columns = noise.shape[1]
    if columns < 2:
        return None
    signs = np.sign(noise).astype(np.float32)  # sums of signs are exact below 2**24
    sums = (signs.T @ signs).astype(np.float64)
    both = np.abs(signs)
    counts = np.maximum((both.T @ both).astype(np.float64), 1.0)
    exponents = sums**2 / (2 * counts)
    exponents[np.tril_indices(columns)] = -1.0
    first, second = np.unravel_index(int(np.argmax(exponents)), exponents.shape)
    pairs = columns * (columns - 1) / 2
    p_value = min(1.0, 2.0 * pairs * float(np.exp(-exponents[first, second])))
    agreement = 0.5 * (1.0 + sums[first, second] / counts[first, second])
    return Shared(int(first), int(second), float(agreement), p_value)
