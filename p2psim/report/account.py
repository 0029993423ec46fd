"""Figures of the privacy calculator: accountants, trade-off curves, and what each agent learns about the others.

Accountants are drawn against the number of releases. What agents learn about each other is drawn as a heat map of all
pairs, and as a curve over distances in the graph.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from p2psim.privacy.accounting.accountants import type_two_error
from p2psim.privacy.network_privacy import Distance, epsilons
from p2psim.report import style
from p2psim.report.words import number


def draw_growth(
    counts: Sequence[int],
    by_accountant: Mapping[str, np.ndarray],
    quantity: str,
    title: str,
    notes: Sequence[str],
) -> Figure:
    """ε or δ by each accountant against the number of releases; call it within `p2psim.report.style.look`.

    Parameters
    ----------
    counts : sequence of int
    by_accountant : mapping from accountant to ndarray, shape (counts,)
        What is not finite is left out.
    quantity : str
        Label of the vertical axis, with what is held fixed.
    title : str
    notes : sequence of str
        What must be said with every number.
    """
    figure = style.new_figure(0.45 * style.page().width)
    axes, ratio = figure.subplots(1, 2)
    drawn = {name: np.where(np.isfinite(v) & (v > 0), v, np.nan) for name, v in by_accountant.items()}
    with np.errstate(invalid="ignore"):
        least = np.fmin.reduce(list(drawn.values()))
    for index, (name, values) in enumerate(drawn.items()):
        axes.plot(counts, values, label=name, **style.plain_line(index))
        ratio.plot(counts, values / least, **style.plain_line(index))
        style.note(axes, name, counts, values)
    if len(counts) > 1:
        axes.set(xscale="log", yscale="log")
        ratio.set(xscale="log", ylim=(0.97, min(5.0, 1.05 * np.nanmax([v / least for v in drawn.values()]))))
    ratio.set(xlabel="releases (number)", ylabel="ratio to the tightest, lower is better")
    label = re.sub(r"[\d.]+e[-+]?\d+", lambda power: number(float(power[0])), quantity)
    style.finish(figure, axes, "releases (number)", f"{label}, lower is better", title, notes)
    return figure


def draw_trade_off(
    epsilons: np.ndarray, by_accountant: Mapping[str, np.ndarray], title: str, notes: Sequence[str]
) -> Figure:
    """δ against ε, and the errors that any test of one record must make; call it within `p2psim.report.style.look`.

    The errors are those of `p2psim.privacy.accounting.accountants.type_two_error`.

    Parameters
    ----------
    epsilons : ndarray, shape (m,)
        Rising.
    by_accountant : mapping from accountant to ndarray, shape (m,)
        δ at each of them.
    title : str
    notes : sequence of str
    """
    figure = style.new_figure(0.45 * style.page().width)
    left, right = figure.subplots(1, 2)
    alpha = np.linspace(0, 1, 401)
    for index, (name, delta) in enumerate(by_accountant.items()):
        look, drawn = style.plain_line(index), np.where(delta > 0, delta, np.nan)
        left.plot(epsilons, drawn, label=name, **look)
        right.plot(alpha, type_two_error(epsilons, delta, alpha), **look)
        style.note(left, name, epsilons, drawn)
    right.plot([0, 1], [1, 0], color="0.6", linewidth=1)
    left.set_yscale("log")
    right.set(xlabel="false alarms α of a test of one record", ylabel="least share of misses", aspect="equal")
    remarks = [*notes, "right: on the grey line no test does better than guessing"]
    style.finish(figure, left, "ε", "δ", title, remarks)
    return figure


#: Agents up to which each has a tick of its own.
_NAMED = 20

#: Characters of a title over the square of all pairs.
_WRAP = 50

#: Shares at which the colour bar has ticks.
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class PairwisePrivacy:
    """What is drawn.

    Attributes
    ----------
    share : ndarray, shape (n, n)
        Row v, column u: μ²σ²/Δ² of u towards v.
    distances : sequence of Distance
        Of ε.
    title : str
        The graph and the number of steps.
    ratio : float
        Δ/σ.
    delta : float
    notes : sequence of str
        What must be said with every number.
    """

    share: np.ndarray
    distances: Sequence[Distance]
    title: str
    ratio: float
    delta: float
    notes: Sequence[str] = ()


def draw_network_privacy(drawn: PairwisePrivacy) -> dict[str, Figure]:
    """Figures by the stem of their files; call it within `p2psim.report.style.look`."""
    figures = {"network-privacy-pairs": _pairs(drawn)}
    if drawn.distances:
        figures["network-privacy-distance"] = _curve(drawn)
    return figures


def _pairs(drawn: PairwisePrivacy) -> Figure:
    """Colour is the share, which no choice of σ, Δ or δ changes; ε stands beside it on the colour bar."""
    figure, axes = style.new_axes(0.7 * style.page().width)
    image = axes.imshow(
        drawn.share, vmin=0, vmax=1, cmap="viridis", interpolation="nearest", aspect="equal", origin="upper"
    )
    axes.grid(False)
    for agent, shares in enumerate(drawn.share):
        style.note(axes, f"seen by agent {agent}", np.arange(len(shares)), shares)
    n = len(drawn.share)
    if n <= _NAMED:
        axes.set(xticks=range(n), yticks=range(n))
    axes.set(xlabel="agent u whose data are protected", ylabel="agent v that observes")
    axes.set_title(style.broken(f"who learns what about whom: {drawn.title}", _WRAP), loc="left")
    bar = figure.colorbar(image, ax=axes, ticks=SHARES)
    named = zip(SHARES, epsilons(np.array(SHARES), drawn.ratio, drawn.delta), strict=True)
    bar.ax.set_yticks(SHARES, [f"{share:g}  (ε = {epsilon:.3g})" for share, epsilon in named])
    bar.set_label(f"share μ²σ²/Δ² (in brackets ε at δ = {number(drawn.delta)})")
    style.add_footnote(figure, drawn.notes)
    return figure


def _curve(drawn: PairwisePrivacy) -> Figure:
    """Mean ε over the pairs at each distance, and from the least to the largest."""
    figure, axes = style.new_axes()
    colour = style.colours(1)[0]
    hops, least, mean, most = zip(*((d.hops, d.least, d.mean, d.most) for d in drawn.distances), strict=True)
    style.shade(axes, hops, least, most, colour, label="from the least to the largest")
    axes.plot(hops, mean, label="mean over pairs", marker="o", color=colour)
    style.note(axes, "mean over pairs", hops, mean, least, most)
    if len(hops) <= _NAMED:
        axes.set_xticks(hops)
    axes.set_ylim(bottom=0)
    title = f"what is learned at a distance: {drawn.title}"
    style.finish(figure, axes, "distance (hops)", f"ε at δ = {number(drawn.delta)}", title, drawn.notes)
    return figure
