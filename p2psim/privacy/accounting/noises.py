"""Noises as accountants know them: what one release of a given loss tells about which of two neighbours it came from.

A noise is described by its *dominating pair* (P, Q) under replacement of one record: whatever the neighbours and
whatever was released before, telling the two apart is no easier than telling P from Q (Zhu, Dong, Wang 2022).
Replacement is symmetric, so (Q, P) is such a pair as well. All that matters of a pair is its hockey-stick curve
δ(ε) = sup_S P(S) − e^ε·Q(S), or the law of its *privacy loss* L = log(dP/dQ) under P.

A noise of your own needs ``name`` and ``delta``, and is hashable. With more methods more accountants can use it:
``pure`` (basic, advanced, kov), ``rdp``, ``zcdp``, ``gaussian``. One that it does not have, or that answers None,
makes the accountants which need it refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from p2psim.privacy.accounting.cumulants import laplace_cumulant, response_cumulant
from p2psim.privacy.accounting.curves import gaussian_delta, laplace_delta, response_delta


class Noise(Protocol):
    """The least that a noise says of itself."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """δ(ε) of one release, for positive losses and ε ≥ 0 that broadcast; convex and falling in e^ε.

        Errors of rounding must stay within 4e-16.
        """


@dataclass(frozen=True)
class Laplace:
    """Laplace noise; the loss is ε₀ = Δ₁/b.

    The pair is Lap(0, 1) and Lap(ε₀, 1), also of a release in p dimensions of L1 sensitivity Δ: coordinates that move
    by d_j are dominated by one that moves by Σ d_j.

    Proof. Let R be randomised response at η ≤ d, which dominates every η-DP release, so Lap at η; p = 1/(1 + e^−η). The
    curve of R beside Lap at d is p·δ_d(ε − η) + (1 − p)·δ_d(ε + η), δ_d(ε) = 1 − e^((ε − d)/2) for |ε| ≤ d. For
    0 ≤ ε ≤ d − η that is 1 − e^((ε − d)/2)/cosh(η/2) ≤ 1 − e^((ε − d − η)/2) = δ_{d+η}(ε), since cosh(x) ≤ e^x; for
    d − η < ε < d + η it is p·δ_{d+η}(ε); above, both are 0; and for ε < 0 by symmetry. So Lap at η beside Lap at d is
    dominated by Lap at d + η, and so on for all coordinates.
    """

    name: str = "laplace"

    def pure(self, losses: np.ndarray) -> np.ndarray:
        """ε₀ of pure DP."""
        return losses

    def rdp(self, losses: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """Rényi divergence of real orders α > 1 (Mironov 2017, Table II)."""
        return laplace_cumulant(losses, orders - 1) / (orders - 1)

    def zcdp(self, losses: np.ndarray) -> np.ndarray:
        """ρ = ε₀²/2 (Bun, Steinke 2016, Proposition 1.4)."""
        return losses**2 / 2

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """δ(ε) = 1 − e^((ε − ε₀)/2) below ε₀, then 0."""
        return laplace_delta(losses, epsilon)


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise; the loss is μ = Δ₂/σ.

    The pair is N(0, 1) and N(μ, 1): the law is round, so only the length of the move matters, and a longer move is
    easier to see.
    """

    name: str = "gaussian"

    def rdp(self, losses: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """Rényi divergence αμ²/2 (Mironov 2017, Proposition 7)."""
        return orders * losses**2 / 2

    def zcdp(self, losses: np.ndarray) -> np.ndarray:
        """ρ = μ²/2 (Bun, Steinke 2016, Proposition 1.6)."""
        return losses**2 / 2

    def gaussian(self, losses: np.ndarray) -> np.ndarray:
        """μ of Gaussian DP (Dong, Roth, Su 2022)."""
        return losses

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle, Wang 2018, Theorem 8)."""
        return gaussian_delta(losses, epsilon)


@dataclass(frozen=True)
class PureNoise:
    """A release of which only ε₀ is known; the loss is ε₀.

    Randomised response dominates every ε₀-DP mechanism (Kairouz, Oh, Viswanath 2015, Theorem 3.2 and Section 4): the
    privacy loss is ε₀ with probability 1/(1 + e^−ε₀) and −ε₀ otherwise.
    """

    name: str = "pure"

    def pure(self, losses: np.ndarray) -> np.ndarray:
        """ε₀ of pure DP."""
        return losses

    def rdp(self, losses: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """Rényi divergence of randomised response (Mironov 2017, Table II)."""
        return response_cumulant(losses, orders - 1) / (orders - 1)

    def zcdp(self, losses: np.ndarray) -> np.ndarray:
        """ρ = ε₀²/2 (Bun, Steinke 2016, Proposition 1.4)."""
        return losses**2 / 2

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """δ(ε) = (e^ε₀ − e^ε)/(1 + e^ε₀) below ε₀, then 0."""
        return response_delta(losses, epsilon)


@dataclass(frozen=True)
class Subsampled:
    """A noise on a random part of the records, by a fixed normaliser; the loss is that without sampling.

    For e^ε' ≥ 1 the curve is δ'(ε') = q·δ(log(1 + (e^ε' − 1)/q)), and below that of a symmetric pair. Both for batches
    of fixed size b drawn without replacement (q = b/n) and for Poisson sampling at rate q whose sums are divided by the
    fixed q·n:

    Proof. Let P₀ be the law of the release when the record that differs is not sampled, and P₁ and Q₁ those when it is,
    on either data set. Then the release has the laws P = (1 − q)P₀ + q·P₁ and Q = (1 − q)P₀ + q·Q₁. By advanced joint
    convexity (Balle, Barthe, Gaboardi 2018, Theorem 2) the hockey stick of P and Q at e^ε' = 1 + q(e^ε − 1) is q times
    that of P₁ and (1 − β)P₀ + β·Q₁ at e^ε, β = e^(ε' − ε), and so at most q times the larger one of those of (P₁, P₀)
    and (P₁, Q₁), by convexity. (P₁, Q₁) is a mixture of pairs of batches that differ in one record that is replaced:
    at most δ(ε). So is (P₁, P₀): a batch of fixed size with the record turns into one without it when a uniformly drawn
    record takes its place; a Poisson batch loses the record, which with a fixed normaliser moves a sum by no more than
    half of what a replacement may. The roles of the data sets can be swapped, hence the symmetric pair. Its curve is
    convex at 1 too: with h(α) the new curve in α = e^ε' and d the old one, h'(1−) = −1 + h(1) − h'(1+), and
    2h'(1+) = 2d'(1+) ≥ −1 + d(1) ≥ −1 + h(1).

    Attributes
    ----------
    noise : Noise
    rate : float
        q, above 0 and at most 1.
    """

    noise: Noise
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"a sampling rate is above 0 and at most 1, got {self.rate}")

    @property
    def name(self) -> str:
        """That of the noise, and the rate."""
        return f"{self.noise.name} sampled at {self.rate:.6g}"

    def pure(self, losses: np.ndarray) -> np.ndarray | None:
        """log(1 + q(e^ε₀ − 1)) (Balle, Barthe, Gaboardi 2018, Theorem 8 and 9); None if the noise is not pure."""
        inner = pure_of(self.noise, losses)
        if inner is None:
            return None
        # Where e^ε₀ overflows, ε₀ + log q is exact, but for an (1 − q)/q·e^−ε₀ that rounds to nothing.
        with np.errstate(over="ignore"):
            return np.where(
                inner < 700, np.log1p(self.rate * np.expm1(np.minimum(inner, 700))), inner + np.log(self.rate)
            )

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """q·δ(log(1 + (e^ε' − 1)/q))."""
        epsilon = np.asarray(epsilon, dtype=float)
        small = np.minimum(epsilon, 600.0)
        # For large ε' the logarithm is ε' − log q + log(1 − (1 − q)e^−ε').
        inner = np.where(
            epsilon < 600,
            np.log1p(np.expm1(small) / self.rate),
            epsilon - np.log(self.rate),
        )
        return self.rate * np.asarray(self.noise.delta(losses, inner))


def pure_of(noise: Noise, losses: np.ndarray) -> np.ndarray | None:
    """ε₀ of releases, or None where the noise is not pure DP."""
    return _ask(noise, "pure", losses)


def rdp_of(noise: Noise, losses: np.ndarray, orders: np.ndarray) -> np.ndarray | None:
    """Rényi divergences of releases, or None where the noise does not know them."""
    return _ask(noise, "rdp", losses, orders)


def zcdp_of(noise: Noise, losses: np.ndarray) -> np.ndarray | None:
    """ρ of releases, or None where the noise is not zCDP."""
    return _ask(noise, "zcdp", losses)


def gaussian_of(noise: Noise, losses: np.ndarray) -> np.ndarray | None:
    """μ of releases, or None where the noise is not Gaussian."""
    return _ask(noise, "gaussian", losses)


def _ask(noise: Noise, method: str, *given: np.ndarray) -> np.ndarray | None:
    found = getattr(noise, method, None)
    return None if found is None else found(*given)


LAPLACE = Laplace()
GAUSSIAN = Gaussian()
#: Of noise on a grid the worst case is one step, which makes it randomised response.
DISCRETE_LAPLACE = PureNoise("discrete-laplace")
PURE = PureNoise()
