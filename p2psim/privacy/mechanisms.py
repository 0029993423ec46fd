"""Mechanisms, the noise that makes releases private: what each is, and those of p2psim.

A mechanism is a noise that scales, the norm in which it hides a change, and what one release costs. One number says
what a release costs: its *loss*, the sensitivity over the scale of the noise, in the noise's own norm. It is ε₀ for
Laplace noise and μ for Gaussian noise. So the scale is sensitivity over loss, and noise as if each record stood for k
multiplies the loss of the real records by k.
"""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import BY_NAME, Options, Positive
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import register_all
from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE, GAUSSIAN, LAPLACE, PURE, Noise


class Mechanism(Options):
    """Base of all mechanisms.

    A mechanism of your own is a subclass with a ``kind``, its own keys, ``norm``, ``noise`` and ``fill_unit``. Noise
    of a scale is that of scale one times it, unless ``of_scale`` says otherwise.

    Attributes
    ----------
    kind : str
        Its name, as ``kind: Literal["staircase"] = "staircase"``.
    is_private : bool
        Whether it guarantees anything.
    power : int
        Power of the losses that adds up over releases: 1 for pure DP, 2 for Gaussian noise, whose μ² add up.
    adds_up : bool
        Whether releases cost no more than one whose loss to the power is the sum of theirs. Where not, a budget's
        shares are only a way to spread it, and the accountant that enforces it says when it ends.
    lattice : float or None
        What noisy values are rounded to multiples of; None for no rounding.
    """

    part_kind: ClassVar[str] = "mechanism"

    # Subclasses declare it with a Literal.
    kind: Any

    is_private: ClassVar[bool] = True
    power: ClassVar[int] = 1
    adds_up: ClassVar[bool] = False
    lattice: ClassVar[float | None] = None

    @property
    @abstractmethod
    def norm(self) -> Literal["l1", "l2"]:
        """In which norm the sensitivity of a release is taken; a class attribute does."""

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """What accountants know of it: the dominating pair of a release of a given loss.

        See `p2psim.privacy.accounting.noises`; a class attribute does. ``PURE`` there says: the loss is ε₀, and no more
        is known.
        """

    @property
    def scales_linearly(self) -> bool:
        """Whether noise of a scale is that of scale one times it."""
        return type(self).of_scale is Mechanism.of_scale

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"the {self.kind} mechanism"

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        """Sensitivity of what noise is added to, where values before that move by at most ``moved`` in the norm."""
        return moved

    @abstractmethod
    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Draw noise of scale one, or whatever `of_scale` makes noise of; the draws know no scale.

        A row depends on nothing but the key, the agent and the number, as `p2psim.core.philox.unit_uniform` does.

        Parameters
        ----------
        key : ndarray of uint64, shape (2,)
            Of the random stream of the run's noise.
        agents, numbers : ndarray of int, shape (releases,)
            Row r is for release numbers[r] of agents[r].
        out : ndarray, shape (releases, p), C-contiguous
            Filled with finite numbers.
        """

    def draw(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, dimension: int) -> np.ndarray:
        """What `fill_unit` draws for some releases, shape (releases, dimension).

        Raises
        ------
        MeaningError
            If a draw is not a finite number.
        """
        unit = np.empty((agents.size, dimension))
        self.fill_unit(key, agents, numbers, unit)
        if not np.isfinite(unit).all():
            raise MeaningError("privacy.mechanism", f"{self.kind} drew noise that is not a finite number")
        return unit

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Noise of the given scales, shape (releases,), from what `fill_unit` drew, shape (releases, p)."""
        return unit * scales[:, None]

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """Variance of one coordinate of noise of the given scales; NaN where it is not known, and not forecast."""
        return np.full(np.shape(scales), np.nan)


def noise_scales(sensitivity: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Scale that makes a release of a sensitivity have a loss: Δ/loss; zero for infinite loss, which is no noise.

    Parameters
    ----------
    sensitivity, losses : ndarray
        Broadcast against each other; losses positive.

    Returns
    -------
    ndarray
        May be infinite where Δ/loss overflows: the caller must look.
    """
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(sensitivity / losses)


class NoNoise(Mechanism):
    """Releases go out as they are: nothing is guaranteed."""

    kind: Literal["none"] = "none"
    is_private: ClassVar[bool] = False
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    noise: ClassVar[Noise] = PURE
    adds_up: ClassVar[bool] = True

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with zeros."""
        out[:] = 0.0

    def draw(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, dimension: int) -> np.ndarray:
        """See `Mechanism.draw`: zeros, which take memory only where somebody reads them."""
        return np.zeros((agents.size, dimension))

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros(np.shape(scales))


class Laplace(Mechanism):
    """Independent Laplace noise in each coordinate, against the L1 sensitivity.

    Density exp(−|x|/b)/(2b). A release of L1 sensitivity Δ has the loss ε₀ = Δ/b and is ε₀-DP (Dwork, McSherry, Nissim,
    Smith 2006).
    """

    kind: Literal["laplace"] = "laplace"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    noise: ClassVar[Noise] = LAPLACE
    adds_up: ClassVar[bool] = True
    title: ClassVar[str] = "Laplace noise"

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with noise of scale one, row by row that of an agent's numbered release."""
        from p2psim.core.philox import unit_laplace

        unit_laplace(key, agents, numbers, out)

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """2b²."""
        return 2.0 * scales**2


class Gaussian(Mechanism):
    """Independent normal noise in each coordinate, against the L2 sensitivity; needs a δ.

    A release of L2 sensitivity Δ with standard deviation s has the loss μ = Δ/s: telling the two data sets apart is as
    hard as telling N(0, 1) from N(μ, 1). Releases compose to one with μ² = Σ μ_t², exactly (Dong, Roth, Su 2022,
    Corollary 3.3). ε and δ turn into μ by the analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8).
    """

    kind: Literal["gaussian"] = "gaussian"
    norm: ClassVar[Literal["l1", "l2"]] = "l2"
    noise: ClassVar[Noise] = GAUSSIAN
    power: ClassVar[int] = 2
    adds_up: ClassVar[bool] = True

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with noise of scale one, row by row that of an agent's numbered release."""
        from p2psim.core.philox import unit_gaussian

        unit_gaussian(key, agents, numbers, out)

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """s²."""
        return np.asarray(scales**2)


#: Largest scale in steps of the grid: draws, up to 38 times as large, must be whole numbers of double precision.
_FINEST = 2.0**46


class DiscreteLaplace(Mechanism):
    """Values are rounded to a grid, and whole numbers of its steps g added, against the L1 sensitivity there.

    P(k steps) ∝ exp(−|k|·g/b) in each coordinate (Ghosh, Roughgarden, Sundararajan 2009). A release whose rounded
    values move by at most Δ_g in L1 has the loss ε₀ = Δ_g/b and is ε₀-DP.
    """

    kind: Literal["discrete-laplace"] = "discrete-laplace"
    grid: Positive = Field(description="g, the step of the grid")
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    noise: ClassVar[Noise] = DISCRETE_LAPLACE
    adds_up: ClassVar[bool] = True
    title: ClassVar[str] = "discrete Laplace noise"

    @property
    def lattice(self) -> float | None:  # type: ignore[override]
        """The grid's step."""
        return self.grid

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        """L1 sensitivity of rounded values, g(⌈Δ/g⌉ + p − 1), where those before move by at most Δ; 0 for Δ = 0.

        Proof. Rounding is ⌊x/g + ½⌋, so a coordinate that moves by d moves by at most ⌈|d|/g⌉ steps, and not at all for
        d = 0. Let Σ|d_j| ≤ Δ. Each ⌈|d_j|/g⌉ is less than |d_j|/g + 1, so that the steps of all p coordinates are
        fewer than Δ/g + p; as a whole number they are at most ⌈Δ/g⌉ + p − 1. It is reached: p − 1 coordinates that
        move by next to nothing across a half, and one that moves by the rest.

        Parameters
        ----------
        moved : ndarray
            Δ, not negative.
        dimension : int
            p.
        """
        steps = np.ceil(moved / self.grid) + dimension - 1
        return np.where(moved > 0, self.grid * steps, 0.0)

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with uniform draws on [0, 1), row by row that of an agent's numbered release."""
        from p2psim.core.philox import unit_uniform

        unit_uniform(key, agents, numbers, out)

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Whole steps of the grid, by inversion of the geometric law, from uniform draws.

        With a = exp(−g/b) the chance of −m steps or fewer is aᵐ/(1 + a) for m ≥ 1. So a draw v below ½ means −m steps,
        m the largest with v < aᵐ/(1 + a), which is −b/g·ln((1 + a)v) rounded up, less one; a draw above ½ means what
        1 − v means, with the other sign.

        Parameters
        ----------
        unit : ndarray, shape (releases, p)
            In [0, 1); zero stands for 2**-54.
        scales : ndarray, shape (releases,)
            b; zero for no noise.

        Raises
        ------
        MeaningError
            If a scale is so many steps that they cannot be counted in double precision.
        """
        steps = scales[:, None] / self.grid
        if not (steps <= _FINEST).all():
            raise MeaningError(
                "privacy.mechanism.grid",
                f"{self.grid:g} is too fine for noise of scale {scales.max():g}: give a step of at least "
                f"{scales.max() / _FINEST:.2g}",
            )
        nearer = np.maximum(np.minimum(unit, 1.0 - unit), 2.0**-54)
        with np.errstate(divide="ignore"):
            a = np.exp(-1.0 / steps)
        away = np.maximum(np.ceil(-steps * np.log((1.0 + a) * nearer)) - 1.0, 0.0)
        return np.where(unit < 0.5, 0.0 - away, away) * self.grid  # 0 − 0 is no negative zero

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """g²·2a/(1 − a)² with a = e^(−g/b), which is g²/(2·sinh²(g/2b)); that of rounding, below g²/4, is not in it."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self.grid**2 / (2.0 * np.sinh(self.grid / (2.0 * scales)) ** 2))


def minimiser_sensitivity(
    bound: ArrayLike,
    records: ArrayLike,
    ridge: ArrayLike,
    dimension: int,
    norm: Literal["l1", "l2"] = "l1",
    of: Literal["l1", "l2"] = "l1",
) -> np.ndarray:
    """Sensitivity of the minimiser of L_i, for noise on it (output perturbation), under replace-one.

    L_i(θ) = (1/m) Σ ℓ(θ; x, y) + λ‖θ‖² with convex ℓ is σ-strongly convex, σ = 2λ. With ‖∇ℓ‖₁ ≤ G₁ and ‖∇ℓ‖₂ ≤ G₂
    the L1 sensitivity is at most

        (G₁ + √p·G₂) / (m·σ),

    and the L2 sensitivity at most 2G₂/(m·σ).

    Proof. Let a and b minimise L_i on data that differ in one record, d = a − b, and u = ∇L(a) − ∇L(b) with L the
    first one's loss. ∇L(a) = 0, and the other's gradient at b is 0, so u is 1/m times a difference of two records'
    gradients at b: ‖u‖₁ ≤ 2G₁/m and ‖u‖₂ ≤ 2G₂/m. Strong convexity says σ‖d‖₂² ≤ dᵀu, which is
    ‖d − u/(2σ)‖₂ ≤ ‖u‖₂/(2σ). Hence ‖d‖₂ ≤ ‖u‖₂/σ, the 2G₂/(mσ) of Chaudhuri, Monteleoni, Sarwate (2011), and
    ‖d‖₁ ≤ ‖u‖₁/(2σ) + √p·‖u‖₂/(2σ). A common step from ‖d‖₂ alone, √p·2G₂/(mσ), is up to twice as much.

    A bound on one norm gives the other: G₂ ≤ G₁ and G₁ ≤ √p·G₂. Clipping gives neither: it bounds what a step uses, not
    the gradients whose zero the minimiser is. With λ = 1/m the sensitivity does not shrink with m.

    Parameters
    ----------
    bound : float or array_like, shape (n,)
        Largest norm of a record's gradient, anywhere that the minimiser can be for any data; true without clipping,
        as from public bounds on x for hinge and logistic losses.
    records : array_like of int, shape (n,)
        m_i; 0 where there are none, so that nothing can move.
    ridge : array_like, shape (n,)
        λ_i, positive.
    dimension : int
        p, of the minimiser.
    norm : {"l1", "l2"}
        Which norm is bounded.
    of : {"l1", "l2"}
        In which norm the minimiser's move is told: l1 for Laplace noise, l2 for Gaussian.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If some λ is not positive: such a minimiser can move without bound.
    """
    G, m, strong = np.asarray(bound, dtype=float), np.asarray(records), 2 * np.asarray(ridge, dtype=float)
    if not (strong > 0).all():
        raise ValueError(f"the ridge must be positive, got {strong.min() / 2}")
    root = np.sqrt(dimension)
    in_l1 = (1 + root) * G if norm == "l1" else 2 * root * G
    both = in_l1 if of == "l1" else 2 * G
    return np.asarray(np.where(m > 0, both / (np.maximum(m, 1) * strong), 0.0))


register_all([NoNoise, Laplace, Gaussian, DiscreteLaplace])

#: Any mechanism that is registered.
AnyMechanism = Annotated[Mechanism, AnyOf("mechanism"), BY_NAME]
