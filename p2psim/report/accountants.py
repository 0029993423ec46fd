"""Figures of the privacy calculator: accountants against the number of releases, and trade-off curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from p2psim.privacy.accounting.accountants import type_two_error
from p2psim.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_growth(
    counts: Sequence[int], found: Mapping[str, np.ndarray], quantity: str, title: str, notes: Sequence[str]
) -> Figure:
    """ε or δ by each accountant against the number of releases; call it within `p2psim.report.style.look`.

    Parameters
    ----------
    counts : sequence of int
    found : mapping from accountant to ndarray, shape (counts,)
        What is not finite is left out.
    quantity : str
        Label of the vertical axis, with what is held fixed.
    title : str
    notes : sequence of str
        What must be said with every number.
    """
    figure = style.new_figure()
    axes = figure.add_subplot()
    for index, (name, values) in enumerate(found.items()):
        drawn = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        axes.plot(counts, drawn, label=name, markersize=5, linewidth=1.6, **style.line_style(index))
    if len(counts) > 1:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel("releases (number)")
    axes.set_ylabel(quantity)
    style.add_title(axes, title)
    style.add_legend(figure, axes)
    style.add_footnote(figure, notes)
    return figure


def draw_trade_off(
    epsilons: np.ndarray, found: Mapping[str, np.ndarray], title: str, notes: Sequence[str]
) -> Figure:
    """δ against ε, and the errors that any test of one record must make; call it within `p2psim.report.style.look`.

    The errors are those of `p2psim.privacy.accounting.accountants.type_two_error`.

    Parameters
    ----------
    epsilons : ndarray, shape (m,)
        Rising.
    found : mapping from accountant to ndarray, shape (m,)
        δ at each of them.
    title : str
    notes : sequence of str
    """
    figure = style.new_figure(10.4, 4.6)
    left, right = figure.subplots(1, 2)
    alpha = np.linspace(0, 1, 401)
    for index, (name, delta) in enumerate(found.items()):
        look = style.line_style(index)
        every = max(1, epsilons.size // 12)
        left.plot(
            epsilons,
            np.where(delta > 0, delta, np.nan),
            label=name,
            markersize=5,
            linewidth=1.6,
            markevery=every,
            **look,
        )
        right.plot(
            alpha, type_two_error(epsilons, delta, alpha), markersize=5, linewidth=1.6, markevery=40, **look
        )
    right.plot([0, 1], [1, 0], color="0.6", linewidth=1)
    left.set_yscale("log")
    left.set_xlabel("ε")
    left.set_ylabel("δ")
    right.set_xlabel("false alarms α of a test of one record")
    right.set_ylabel("least share of misses")
    right.set_aspect("equal")
    style.add_title(left, title)
    style.add_legend(figure, left)
    style.add_footnote(figure, [*notes, "right: on the grey line no test does better than guessing"])
    return figure
