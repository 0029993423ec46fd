"""Whether what a mechanism shows of its data fits its claim.

A claim is a curve δ(e): for every set S of outputs and adjacent data sets P and Q, P(S) − e^e·Q(S) ≤ δ(e). An audit
runs the mechanism on both, counts how often its outputs fall into a set, and rejects the claim when the inequality
fails beyond chance. Any set will do for this to be sound; the best ones are those where the claimed log-likelihood
ratio exceeds e (Neyman and Pearson), so scores are such ratios, and bad scores cost power alone.

The bounds on probabilities are those of Clopper and Pearson (1934), exact for every number of samples; all bounds of
one audit hold together with probability 1 − γ at least, by Bonferroni. As it is not the samples that choose the
thresholds, no correction for choosing is due.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, sampled

#: A cut just below the largest loss.
_NEAR = 0.99

#: What scores by each law are called, after the canary.
_BY = "", ", learned law"

#: Exact up to a hair above: of every noise it needs the curve of one release alone.
_ACCOUNTANT = "pld"

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


@dataclass(frozen=True)
class Claim:
    """What releases of one agent are claimed to cost together.

    Attributes
    ----------
    noise : Noise
    losses : ndarray, shape (releases,)
        Sensitivity over scale.
    rate : float
        Probability that a record is in the batch of a release, in (0, 1].
    poisson : bool
        Whether it is drawn whatever the others do.
    """

    noise: Noise
    losses: np.ndarray
    rate: float
    poisson: bool = False

    @property
    def sampled_losses(self) -> np.ndarray:
        """Losses log(1 + q(e^ε₀ − 1)) after sampling with the rate q, shape (releases,)."""
        return np.asarray(np.log1p(self.rate * np.expm1(self.losses)))

    @property
    def _charges(self) -> Charges:
        return Charges.of(sampled(self.noise, self.rate, self.poisson), self.losses)

    def delta(self, epsilon: float) -> float:
        """δ at ε."""
        return float(ACCOUNTANTS[_ACCOUNTANT].delta(self._charges, epsilon)[0])

    def epsilon(self, delta: float) -> float:
        """ε at δ; infinite where there is none."""
        return float(ACCOUNTANTS[_ACCOUNTANT].epsilon(self._charges, delta)[0])


def findings_of(
    names: Sequence[str], scores: Sequence[np.ndarray], whole: Claim, gamma: float
) -> tuple[Finding, ...]:
    """All releases together, and the one with the largest loss alone.

    Many small steps hide whether a bound is in L1 or L2: then only the sum of squares counts, and that is the same. A
    single release of pure noise tells, as no ratio beyond its loss is claimed.

    Parameters
    ----------
    names : sequence of str
        Of the canaries.
    scores : sequence of ndarray, shape (laws, samples, releases)
        On P and on Q for each canary, by the claimed law, and by one that was learned from other runs where that is a
        guess; more releases than are claimed, if more were made.
    whole : Claim
        Of all releases that are claimed.
    """
    parts = [(slice(None), whole, "")]
    if whole.losses.size > 1:
        largest = int(np.argmax(whole.losses))
        single = slice(largest, largest + 1)
        parts.append((single, replace(whole, losses=whole.losses[single]), ", one release"))
    results: tuple[Finding, ...] = ()
    laws = range(len(scores[0]))
    for part, claim, note in parts:
        canaries = [
            Canary(name + note + _BY[law], p[law][:, part].sum(axis=1), q[law][:, part].sum(axis=1))
            for name, p, q in zip(names, scores[::2], scores[1::2], strict=True)
            for law in laws
        ]
        e: tuple[float, ...] = thresholds_for(claim.sampled_losses)
        cuts = e
        if len(laws) > 1:
            # Laplace noise has its largest ratio with a probability of its own: no score of a guess is above it.
            e, cuts = (*e, e[-1]), (*e, _NEAR * e[-1])
        results += findings(canaries, claim.delta, e, gamma / len(parts), cuts)
    return results
