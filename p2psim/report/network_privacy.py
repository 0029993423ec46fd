"""Figures of who learns what about whom: a heat map of all pairs, and a curve over distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.privacy.network_privacy import Distance
from p2psim.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Agents up to which each has a tick of its own.
_NAMED = 20

#: Characters of a title over the square of all pairs.
_WRAP = 50

#: Shares at which the colour bar has ticks.
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Drawn:
    """What is drawn.

    Attributes
    ----------
    share : ndarray, shape (n, n)
        Row v, column u: μ²σ²/Δ² of u towards v.
    scale : ndarray, shape (6,)
        ε at each of `SHARES`.
    distances : sequence of Distance
        Of ε.
    title : str
        The graph and the number of steps.
    delta : float
    notes : sequence of str
        What must be said with every number.
    """

    share: np.ndarray
    scale: np.ndarray
    distances: Sequence[Distance]
    title: str
    delta: float
    notes: Sequence[str] = ()


def draw_network_privacy(drawn: Drawn) -> dict[str, Figure]:
    """Figures by the stem of their files; call it within `p2psim.report.style.look`."""
    figures = {"network-privacy-pairs": _pairs(drawn)}
    if drawn.distances:
        figures["network-privacy-distance"] = _curve(drawn)
    return figures


def _pairs(drawn: Drawn) -> Figure:
    """Colour is the share, which no choice of σ, Δ or δ changes; ε stands beside it on the colour bar."""
    figure = style.new_figure(7.0, 5.4)
    axes = figure.add_subplot()
    image = axes.imshow(
        drawn.share, vmin=0, vmax=1, cmap="viridis", interpolation="nearest", aspect="equal", origin="upper"
    )
    axes.grid(False)
    n = len(drawn.share)
    if n <= _NAMED:
        axes.set_xticks(range(n))
        axes.set_yticks(range(n))
    axes.set_xlabel("agent u whose data are protected")
    axes.set_ylabel("agent v who looks")
    axes.set_title(style.wrapped(f"who learns what about whom: {drawn.title}", _WRAP), loc="left")
    bar = figure.colorbar(image, ax=axes, ticks=SHARES)
    named = zip(SHARES, drawn.scale, strict=True)
    bar.ax.set_yticks(SHARES, [f"{share:g}  (ε = {epsilon:.3g})" for share, epsilon in named])
    bar.set_label(f"share μ²σ²/Δ² (in brackets ε at δ = {drawn.delta:g})")
    style.add_footnote(figure, drawn.notes)
    return figure


def _curve(drawn: Drawn) -> Figure:
    """Mean ε over the pairs at each distance, and from the least to the largest."""
    figure = style.new_figure()
    axes = figure.add_subplot()
    look = style.line_style(0)
    hops = [row.hops for row in drawn.distances]
    axes.fill_between(
        hops,
        [row.least for row in drawn.distances],
        [row.most for row in drawn.distances],
        color=look["color"],
        alpha=0.15,
        linewidth=0,
        label="least to largest",
    )
    axes.plot(hops, [row.mean for row in drawn.distances], label="mean over pairs", markersize=6, **look)
    largest = style.line_style(3)
    axes.plot(
        hops, [row.most for row in drawn.distances], label="largest", markersize=5, linewidth=1, **largest
    )
    if len(hops) <= _NAMED:
        axes.set_xticks(hops)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("distance (hops)")
    axes.set_ylabel(f"ε at δ = {drawn.delta:g}")
    style.add_title(axes, f"what is learned at a distance: {drawn.title}")
    style.add_legend(figure, axes)
    style.add_footnote(figure, drawn.notes)
    return figure
