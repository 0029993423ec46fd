"""Pessimistic discretisation: the law of a release's loss, moved to a grid.

Let L = ln dP/dQ under P. The mass of a cell [l, l + h] of the grid is split between its two ends so that its mass m
under P and its mass q = E[e^{−L}] under Q are both kept:

    w_low = (q − m·e^{−(l+h)})/(e^{−l} − e^{−(l+h)}),    w_high = m − w_low.

Soundness. Both weights are at least 0, since e^{−L} lies between e^{−(l+h)} and e^{−l} in the cell. The new likelihood
ratios e^{−l} are, under P, a mean-preserving spread of the old ones, cell by cell. A curve
δ(ε) = E_P[max(0, 1 − e^{ε−L})] is the mean of a convex function of e^{−L}, which by Jensen's inequality such a spread
does not lower. So the new pair of laws dominates the old one at every ε, and dominating pairs compose (Zhu, Dong, Wang
2022, Theorem 10). The curves agree at the points of the grid, where the function has its kink: this is "connect the
dots" (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022), and the excess is of second order in h. Mass above the grid
goes to +∞, mass below it up to the lowest point: both only raise δ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accounting.noises import GaussianNoise, LaplaceNoise, Noise, PureDP

#: Probability that the tail of an unbounded loss is cut at, each side; it is counted.
TAIL = 1e-30


@dataclass(frozen=True)
class Laws:
    """Laws of losses on the multiples of h.

    Attributes
    ----------
    first : ndarray of int64, shape (u,)
        Row i begins at the point first[i]·h.
    mass : ndarray, shape (u, w)
        Under P; rows are filled up with zeros.
    beyond : ndarray, shape (u,)
        Mass at +∞.
    """

    first: np.ndarray
    mass: np.ndarray
    beyond: np.ndarray


def together(parts: list[Laws]) -> Laws:
    """All rows in one."""
    width = max(part.mass.shape[1] for part in parts)
    mass = [np.pad(part.mass, ((0, 0), (0, width - part.mass.shape[1]))) for part in parts]
    return Laws(
        np.concatenate([part.first for part in parts]),
        np.concatenate(mass),
        np.concatenate([part.beyond for part in parts]),
    )


def spread(noise: Noise, loss: float) -> float:
    """How fine the law of one loss is: about the scale on which its density changes."""
    if isinstance(noise, LaplaceNoise):
        return min(loss, 2.0)
    return loss if isinstance(noise, GaussianNoise) else min(loss, 1.0) / 2


def laws(noise: Noise, losses: np.ndarray, h: float) -> Laws:
    """Discretise releases with one noise and different losses, shape (u,), all positive and finite."""
    if isinstance(noise, LaplaceNoise):
        return _laplace(losses, h)
    if isinstance(noise, PureDP):
        return _pure(losses, h)
    if isinstance(noise, GaussianNoise):
        return together([_gaussian(float(loss), h) for loss in losses])
    return together([_from_curve(noise, float(loss), h) for loss in losses])


def _split(mass: np.ndarray, ratio: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights at both ends of cells; ``ratio`` is q·e^l, the image relative to the lower end."""
    low = np.clip((ratio - mass * np.exp(-h)) / -np.expm1(-h), 0.0, mass)  # outside by rounding alone
    return low, mass - low


def _laplace(losses: np.ndarray, h: float) -> Laws:
    """L has density ¼e^{(l−ε₀)/2} between ±ε₀, and atoms ½ at ε₀ and ½e^{−ε₀} at −ε₀.

    An inner point, both of whose cells are full, gets tanh(h/4)·e^{(l−ε₀)/2}; half of it from each cell. The upper last
    cell [Jh, (J+1)h] has the atom and what is left of the density; the lower one is its image, since
    P(L = −l) = e^{−l}·P(L = l) for every l.
    """
    e = np.asarray(losses, dtype=float)[:, None]
    J = np.floor(e / h)
    gap = (J * h - e) / 2  # from −h/2 to 0
    atom = 0.5 + 0.5 * -np.expm1(gap)
    ratio = 0.5 * np.exp(2 * gap) + 0.5 * np.exp(gap) * -np.expm1(gap)
    inner, outer = _split(atom, ratio, h)
    width = int(J.max()) + 1
    points = np.arange(-width, width + 1)[None, :]
    places = points * h
    with np.errstate(over="ignore"):
        density = np.tanh(h / 4) * np.exp((places - e) / 2)
    full = np.abs(points) < J
    edge = np.abs(points) == J
    last = np.abs(points) == J + 1
    image = np.exp(np.minimum(places, 0.0))
    mass = np.where(full, density, 0.0)
    # Where J = 0 the point 0 belongs to both last cells, and to no full one.
    mass += np.where(edge, np.where(J > 0, density / 2 + inner * image, 2 * inner), 0.0)
    mass += np.where(last, outer * image, 0.0)
    return Laws(np.full(e.size, -width), mass, np.zeros(e.size))


def _pure(losses: np.ndarray, h: float) -> Laws:
    """Randomised response: atoms p = e^{ε₀}/(1 + e^{ε₀}) at ε₀ and 1 − p at −ε₀."""
    e = np.asarray(losses, dtype=float)[:, None]
    J = np.floor(e / h)
    p = 1 / (1 + np.exp(-e))
    inner, outer = _split(p, p * np.exp(J * h - e), h)
    width = int(J.max()) + 1
    points = np.arange(-width, width + 1)[None, :]
    image = np.exp(np.minimum(points * h, 0.0))
    mass = np.where(np.abs(points) == J, np.where(J > 0, inner * image, 0.0), 0.0)
    # Where J = 0 the point 0 gets what both atoms give it: each the same, by symmetry.
    mass += np.where((points == 0) & (J == 0), 2 * inner, 0.0)
    mass += np.where(np.abs(points) == J + 1, outer * image, 0.0)
    return Laws(np.full(e.size, -width), mass, np.zeros(e.size))


def _gaussian(mu: float, h: float) -> Laws:
    """N(μ²/2, μ²) under P, N(−μ²/2, μ²) under Q."""
    from scipy.special import ndtr

    mean, reach = mu**2 / 2, mu * np.sqrt(-2 * np.log(TAIL))
    first, last = int(np.floor((mean - reach) / h)), int(np.ceil((mean + reach) / h))
    edges = np.arange(first, last + 1) * h
    mass = _cells((edges - mean) / mu)
    # Under Q relative to the lower end: the density of Q is that of P times e^{−l}.
    ratio = np.minimum(_cells((edges + mean) / mu) * np.exp(np.minimum(edges[:-1], 700.0)), mass)
    low, high = _split(mass, ratio, h)
    whole = np.zeros(edges.size)
    whole[:-1] += low
    whole[1:] += high
    whole[0] += float(ndtr((edges[0] - mean) / mu))
    return Laws(np.array([first]), whole[None, :], np.array([float(ndtr(-(edges[-1] - mean) / mu))]))


def _cells(z: np.ndarray) -> np.ndarray:
    """Standard normal masses between points, as differences on the side where they are small."""
    from scipy.special import ndtr

    return np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))


def _from_curve(noise: Noise, loss: float, h: float) -> Laws:
    """Connect the dots of a curve: the polygon in e^ε through its values at the points of the grid, 1 at e^ε = 0.

    Minus its slope is the mass under Q above; its last value, kept from there on, is the mass at +∞.
    """
    high = h
    while float(noise.delta(np.array(loss), np.array(high))) > TAIL and high < 1e4 * (1 + loss):
        high *= 1.25
    last = int(np.ceil(high / h))
    points = np.arange(-last, last + 1) * h
    values = noise.delta(np.array(loss), points)
    # Slopes, times e^{l} of the point that they are asked at, so that nothing overflows.
    rises = np.diff(values) / np.expm1(h)  # slope of cell j times e^{l_j}
    mass = np.empty(points.size)
    mass[1:-1] = rises[1:] - rises[:-1] * np.exp(h)
    mass[0] = rises[0] - (values[0] - 1.0)
    mass[-1] = -rises[-1] * np.exp(h)
    # A convex curve makes them positive, up to rounding of the curve itself.
    return Laws(np.array([-last]), np.maximum(mass, 0.0)[None, :], np.array([float(values[-1])]))
