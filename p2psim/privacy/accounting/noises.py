"""Noises as accountants see them: by a pair of laws that dominates neighbouring data, and cumulants of losses.

The pair dominates every pair of laws that neighbouring data can give. What a release costs is one number, its ``loss``:
sensitivity by scale, in the noise's own norm. A pair of laws (P, Q) dominates if its hockey-stick curve
δ(ε) = sup_S P(S) − e^ε·Q(S), for every real ε, is nowhere below that of any neighbouring data. Dominating pairs compose
(Zhu, Dong, Wang 2022, Theorem 10), so accountants may work with them alone. Replacing a record has no direction: each
curve here is that of both orders, and satisfies δ(−ε) = 1 − e^{−ε}(1 − δ(ε)).

Cumulants are log E[e^(λL)] of privacy losses L under P: λ times the Rényi divergence of order λ + 1. All are written so
that nothing cancels where losses are tiny and nothing overflows where they are large.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from p2psim.privacy.accounting.gaussian_curves import gaussian_delta, poisson_gaussian_delta

Float = np.ndarray

#: Relative error of the curves here, at most, besides that of their arguments: see `gaussian_delta`.
_CURVE_ERROR = 1e-11


@runtime_checkable
class Noise(Protocol):
    """What an accountant can ask of every noise.

    A noise may have further methods, which accountants look for: ``pure(losses)``, ε₀ of each release, if it is ε₀-DP
    with δ = 0; ``rdp(losses, orders)``, its Rényi divergence of real orders above 1, which broadcasts;
    ``zcdp(losses)``, ρ of each release, if it is ρ-zCDP; ``upper_masses(losses, h)``, its privacy loss distribution on
    a grid (`p2psim.privacy.accounting.grids`) without a detour by the curve.
    """

    @property
    def name(self) -> str:
        """Its name in messages."""

    def delta(self, losses: Float, epsilon: Float) -> Float:
        """Hockey-stick curve of the dominating pair of one release: convex in e^ε, for every real ε; broadcasts."""


@dataclass(frozen=True)
class PureDP:
    """Anything of which only ε₀ is known: randomised response is the worst case (Kairouz, Oh, Viswanath 2017)."""

    name: str = "pure"
    relative_error: ClassVar[float | None] = _CURVE_ERROR

    def pure(self, losses: Float) -> Float:
        """ε₀ itself."""
        return np.asarray(losses, dtype=float)

    def delta(self, losses: Float, epsilon: Float) -> Float:
        """(e^{ε₀} − e^ε)/(1 + e^{ε₀}) for |ε| ≤ ε₀."""

        def upper(e: Float) -> Float:
            return np.maximum(0.0, -np.expm1(np.minimum(0.0, e - losses)) / (1 + np.exp(-np.asarray(losses))))

        return _symmetric(epsilon, upper)

    def rdp(self, losses: Float, orders: Float) -> Float:
        """The cumulant at λ = α − 1, over λ."""
        powers = np.asarray(orders, dtype=float) - 1
        return self.cumulant(np.asarray(losses, dtype=float), powers) / powers

    def cumulant(self, losses: Float, powers: Float) -> Float:
        """Of randomised response: log(p·e^(λε₀) + (1 − p)·e^(−λε₀)), p = 1/(1 + e^−ε₀).

        Parameters
        ----------
        losses : ndarray
            ε₀, not negative.
        powers : ndarray
            λ, positive; broadcasts.
        """
        fall = np.exp(-np.minimum(losses, _LARGE))
        up, down = 1 / (1 + fall), fall / (1 + fall)
        small = np.minimum(powers * losses, _LARGE)
        beyond = up * exp_beyond_line(small) + down * exp_beyond_line(-small) + np.tanh(losses / 2) * small
        return _log_sum(up, powers * losses, beyond)

    def zcdp(self, losses: Float) -> Float:
        """ε₀²/2 (Bun, Steinke 2016, Proposition 3.3)."""
        return np.asarray(losses, dtype=float) ** 2 / 2

    def upper_masses(self, losses: Float, h: float) -> Float:
        """Randomised response: the atom p = 1/(1 + e^{−ε₀}) at ε₀; w_high = p·(1 − e^{−r})/(1 − e^{−h})."""
        e, J, r, number = _cell(losses, h)
        p = 1 / (1 + np.exp(-np.minimum(e, 745.0)))
        high = p * np.expm1(-r) / np.expm1(-h)
        return np.where(number == J, p - high, 0.0) + np.where(number == J + 1, high, 0.0)


@dataclass(frozen=True)
class LaplaceNoise(PureDP):
    """Laplace noise; loss ε₀ = Δ₁/b.

    The pair is Lap(0, 1) and Lap(ε₀, 1), also of a release in p dimensions of L1 sensitivity Δ: coordinates that move
    by d_j are dominated by one that moves by Σ d_j.

    Proof. Let R be randomised response at η ≤ d, which dominates every η-DP release, so Lap at η; p = 1/(1 + e^{−η}).
    The curve of R beside Lap at d is p·δ_d(ε − η) + (1 − p)·δ_d(ε + η), δ_d(ε) = 1 − e^{(ε − d)/2} for |ε| ≤ d. For
    0 ≤ ε ≤ d − η that is 1 − e^{(ε − d)/2}/cosh(η/2) ≤ 1 − e^{(ε − d − η)/2} = δ_{d+η}(ε), since cosh(x) ≤ e^x; for
    d − η < ε < d + η it is p·δ_{d+η}(ε); above, both are 0; and for ε < 0 by symmetry. So Lap at η beside Lap at d is
    dominated by Lap at d + η, and so on for all coordinates.
    """

    name: str = "laplace"

    def delta(self, losses: Float, epsilon: Float) -> Float:
        """1 − e^{(ε − ε₀)/2} for |ε| ≤ ε₀, 0 above, 1 − e^ε below."""
        return _symmetric(epsilon, lambda e: np.maximum(0.0, -np.expm1(np.minimum(0.0, (e - losses) / 2))))

    def cumulant(self, losses: Float, powers: Float) -> Float:
        """log((λ+1)/(2λ+1)·e^(λε₀) + λ/(2λ+1)·e^(−(λ+1)ε₀)) (Mironov 2017, Table II and Proposition 6)."""
        up = (powers + 1) / (2 * powers + 1)
        rise, fall = powers * losses, -(powers + 1) * losses
        # The weighted exponents cancel: (λ+1)·λε₀ − λ·(λ+1)ε₀ = 0.
        beyond = up * exp_beyond_line(np.minimum(rise, _LARGE)) + (1 - up) * exp_beyond_line(fall)
        return _log_sum(up, rise, beyond)

    def upper_masses(self, losses: Float, h: float) -> Float:
        """L has density ¼e^{(l−ε₀)/2} between ±ε₀, and atoms ½ at ε₀ and ½e^{−ε₀} at −ε₀.

        A point whose two cells are full gets tanh(h/4)·e^{(l−ε₀)/2}, half of it from each. The last cell [Jh, (J+1)h]
        holds m = 1 − ½e^{−r/2} with q·e^{Jh} = ½e^{−r/2}, r = ε₀ − Jh, so that w_high = (1 − e^{−r/2})/(1 − e^{−h}).
        """
        e, J, r, number = _cell(losses, h)
        density = np.tanh(h / 4) * np.exp(np.minimum(number * h - e, 0.0) / 2)
        high = np.expm1(-r / 2) / np.expm1(-h)
        low = -np.expm1(-r / 2) / 2 + 0.5 - high
        mass = np.where(number < J, density, 0.0)
        mass += np.where(number == J, density / 2 + low, 0.0)
        return mass + np.where(number == J + 1, high, 0.0)


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise; loss μ = Δ₂/σ. Its pair is N(μ, 1) and N(0, 1), in any dimension (Dong, Roth, Su 2022)."""

    name: str = "gaussian"
    relative_error: ClassVar[float | None] = _CURVE_ERROR

    def delta(self, losses: Float, epsilon: Float) -> Float:
        """Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle, Wang 2018, Theorem 8)."""
        return _symmetric(epsilon, lambda e: gaussian_delta(losses, e))

    def rdp(self, losses: Float, orders: Float) -> Float:
        """αμ²/2."""
        return np.asarray(orders, dtype=float) * np.asarray(losses, dtype=float) ** 2 / 2

    def zcdp(self, losses: Float) -> Float:
        """μ²/2, exact."""
        return np.asarray(losses, dtype=float) ** 2 / 2


@dataclass(frozen=True)
class Subsampled:
    """A noise on the sum over a random batch, divided by a number that does not depend on the batch.

    The batch is a Poisson sample of the records, each drawn with probability q, or of fixed size without replacement,
    q its share of the records. In a Poisson sample no record may add a vector whose norm exceeds the sensitivity.
    Let a record be replaced. Where it is not drawn (probability 1 − q) the two outputs have
    the same law ν; where it is, laws P₁ and Q₁ (given who else is drawn; without replacement, given who takes its
    place). Then δ(ε') of (1 − q)ν + qP₁ against (1 − q)ν + qQ₁, with e^{ε'} = 1 + q(e^ε − 1), is at most

        q·((1 − β)·δ_ε(P₁, ν) + β·δ_ε(P₁, Q₁)) ≤ q·δ(ε),    β = e^{ε'−ε},

    by advanced joint convexity (Balle, Barthe, Gaboardi 2018, Theorem 2): P₁ and ν differ in one record that is there
    or not (Poisson), which moves a sum by half as much as a replacement, or in one that is replaced (without
    replacement). That holds for ε' ≥ 0; for ε' < 0 the curve is completed by symmetry, since replacing has no
    direction. The result is convex in e^{ε'}, so it is the curve of a pair, which composes. Without replacement it is
    reached (by others who are alike). Poisson samples cost less; for Gaussian noise `PoissonGaussian` tells how much.

    Attributes
    ----------
    noise : Noise
        Of the sum.
    rate : float
        q, in (0, 1].
    """

    noise: Noise
    rate: float
    #: What the account assumes of the sum, beside its sensitivity Δ to a replaced record.
    assumes: ClassVar[str] = "a record adds at most Δ in norm to a sum over a Poisson sample"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"a sampling rate must be in (0, 1], got {self.rate}")

    @property
    def name(self) -> str:
        """That of the noise, and the rate."""
        return f"{self.noise.name} sampled at {self.rate:g}"

    @property
    def relative_error(self) -> float | None:
        """That of the noise's curve."""
        return relative_error(self.noise)

    @property
    def is_pure(self) -> bool:
        """Whether the noise is ε₀-DP, and so the sampled release."""
        return is_pure(self.noise)

    def pure(self, losses: Float) -> Float:
        """Pure DP of the sampled release, ln(1 + q(e^{ε₀} − 1))."""
        own = self.noise.pure(losses)  # type: ignore[attr-defined]
        # For large ε₀ without e^{ε₀}: ε₀ + ln(q + (1 − q)e^{−ε₀}).
        with np.errstate(over="ignore"):
            small = np.log1p(self.rate * np.expm1(np.minimum(own, 30.0)))
        return np.where(own < 30, small, own + np.log(self.rate + (1 - self.rate) * np.exp(-own)))

    def delta(self, losses: Float, epsilon: Float) -> Float:
        """q·δ(ln(1 + (e^{ε'} − 1)/q)) for ε' ≥ 0, and its symmetric completion."""

        def upper(e: Float) -> Float:
            with np.errstate(over="ignore"):
                return np.asarray(self.rate * self.noise.delta(losses, before_sampling(e, self.rate)))

        return _symmetric(epsilon, upper)


@dataclass(frozen=True)
class PoissonGaussian:
    """Gaussian noise on the sum over a Poisson sample of the records, exactly.

    Each record is drawn with probability q, and then adds a vector of norm at most r = μ/2, in units of σ. A record is
    replaced. The pair is (1 − q)N(0, 1) + qN(r, 1) and (1 − q)N(0, 1) + qN(−r, 1), in any dimension.

    Proof. Given who else is drawn, the two laws are (1 − q)N(0) + qN(x) and (1 − q)N(0) + qN(x') about the others' sum,
    with ‖x‖, ‖x'‖ ≤ r; their mixtures over the others are no easier to tell apart, as hockey-stick divergences are
    jointly convex. For ε' ≥ 0, with e^{ε'} = 1 + q(e^ε − 1) and β = e^{ε'−ε}, the divergence of the two is exactly q
    times that of N(x) from (1 − β)N(0) + βN(x') at ε (Balle, Barthe, Gaboardi 2018, Theorem 2). With N(x) moved to 0
    that is E[φ((1 − β)e^{G_A − E[G_A²]/2} + βe^{G_B − E[G_B²]/2})], where φ(s) = max(0, 1 − e^ε·s) is convex,
    G_A = ⟨A, Z⟩ and G_B = ⟨B, Z⟩ for a standard normal Z, A = −x and B = x' − x. By Kahane's convexity inequality
    (1986) such a mean does not fall where covariances rise: its derivative along (1 − t)K + tK' is
    ½Σ_ij (K'_ij − K_ij)·E[w_i·e^{…}·w_j·e^{…}·φ''] ≥ 0. And ⟨A, A⟩ ≤ r², ⟨B, B⟩ ≤ 4r², ⟨A, B⟩ ≤ 2r², all of which
    are reached together by x = r and x' = −r on a line. For ε' < 0 exchange the two laws, which the pair is symmetric
    in.

    Attributes
    ----------
    rate : float
        q, in (0, 1).
    """

    rate: float
    relative_error: ClassVar[float | None] = _CURVE_ERROR
    #: As of `Subsampled`.
    assumes: ClassVar[str] = "a record adds at most Δ/2 in norm to a sum, as clipped gradients do"

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ValueError(f"a sampling rate must be in (0, 1), got {self.rate}")

    @property
    def name(self) -> str:
        """That of the noise, and the rate."""
        return f"gaussian sampled at {self.rate:g} by poisson"

    def delta(self, losses: Float, epsilon: Float) -> Float:
        """See `p2psim.privacy.accounting.gaussian_curves.poisson_gaussian_delta`."""
        return _symmetric(epsilon, lambda e: poisson_gaussian_delta(losses, self.rate, e))


def sampled(noise: Noise, rate: float, poisson: bool = False) -> Noise:
    """A noise whose releases each sample this share of the records.

    Parameters
    ----------
    noise : Noise
    rate : float
        In (0, 1].
    poisson : bool
        Whether each record is drawn whatever the others do. For Gaussian noise less is then charged.
    """
    if rate == 1:
        return noise
    return PoissonGaussian(rate) if poisson and is_gaussian(noise) else Subsampled(noise, rate)


def before_sampling(losses: Float, rates: Float | float) -> Float:
    """Pure losses of noise whose releases, each of a sample of the records, have the given losses.

    A sample of a share q turns ε₀ into log(1 + q(e^ε₀ − 1)) (Balle, Barthe, Gaboardi 2018, Theorems 8 and 9 with
    δ = 0), so ε comes of log(1 + (e^ε − 1)/q).

    Parameters
    ----------
    losses : ndarray
        Not negative, possibly infinite.
    rates : ndarray or float
        q in (0, 1]; broadcasts.
    """
    small = np.minimum(losses, 30.0)  # above, e^ε − 1 is e^ε in double precision
    before = np.where(losses > 30.0, losses - np.log(rates), np.log1p(np.expm1(small) / rates))
    return np.where(rates == 1, losses, before)


def _cell(losses: Float, h: float) -> tuple[Float, Float, Float, Float]:
    """Losses in a column, the number J of the point below, its distance r from there, 0 ≤ r < h; and all numbers."""
    e = np.asarray(losses, dtype=float)[:, None]
    # A loss that is a multiple of h up to rounding lies on its point.
    J = np.floor(e / h * (1 + 4e-16))
    return e, J, np.clip(e - J * h, 0.0, h), np.arange(1, int(J.max()) + 2)[None, :]


def _symmetric(epsilon: Float, upper: Callable[[Float], Float]) -> Float:
    """Complete a curve for ε ≥ 0 to all ε by δ(−ε) = 1 − e^{−ε}(1 − δ(ε))."""
    e = np.asarray(epsilon, dtype=float)
    above = upper(np.abs(e))
    return np.where(e >= 0, above, 1 - np.exp(np.minimum(e, 0.0)) * (1 - above))


LAPLACE = LaplaceNoise()
GAUSSIAN = GaussianNoise()
#: Loss ε₀ = Δ₁/b. Accounted for as anything that is ε₀-DP, which is never too little.
DISCRETE_LAPLACE = PureDP("discrete-laplace")
PURE = PureDP()


def is_pure(noise: Noise) -> bool:
    """Whether a release with this noise is ε₀-DP with δ = 0."""
    return hasattr(noise, "pure") and getattr(noise, "is_pure", True)


def is_gaussian(noise: Noise) -> bool:
    """Whether releases with this noise are together, exactly, one whose squared loss is the sum of theirs."""
    return isinstance(noise, GaussianNoise)


def relative_error(noise: Noise) -> float | None:
    """Relative error of a noise's curve, down to numbers near 1e-314; None where it is not known."""
    return getattr(noise, "relative_error", None)


#: Below this the series is used.
_SMALL = 0.3
#: Terms of the series: .3^14/14! is below 1e-18 of the first one.
_TERMS = 14
#: Largest exponent that is not near overflow.
_LARGE = 600.0


def exp_beyond_line(x: np.ndarray) -> np.ndarray:
    """e^x − 1 − x, to relative precision; not negative.

    Parameters
    ----------
    x : ndarray
        At most 700.
    """
    x = np.asarray(x, dtype=float)
    near = np.where(np.abs(x) < _SMALL, x, 0.0)
    series = np.zeros_like(near)
    for n in range(_TERMS, 1, -1):
        # x²/2·(1 + x/3·(1 + x/4·(…))).
        series = near / n * (1.0 + series) if n > 2 else near * near / 2 * (1.0 + series)
    return np.where(np.abs(x) < _SMALL, series, np.expm1(x) - x)


def _log_sum(up: np.ndarray, rise: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """log(1 + beyond); where the exponent is large log(up·e^rise), the largest term."""
    return np.where(rise > _LARGE, rise + np.log(up), np.log1p(beyond))
