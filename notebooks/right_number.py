# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is λ₂ the right number?
#
# Thirty-two agents minimise random quadratics together by decentralised SGD, on six graphs. Which number of a graph
# says how fast they can learn: the spectral gap 1 − λ₂ of the mixing matrix, or the effective number of neighbours
# n_W(γ)? All rates are exact: nothing is simulated (`p2psim.theory.quadratics`). The figure is saved in the folder
# `P2PSIM_NOTEBOOK_FIGURES`, if it is set.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import ticker

import p2psim
from p2psim.network.graph import TopologyInputs
from p2psim.network.mixing import mixing_matrix
from p2psim.network.topologies import draw_links
from p2psim.report import style
from p2psim.theory.neighbours import effective_neighbours, one_peer_exponential
from p2psim.theory.quadratics import best_step, rate, rate_alone

figures = os.environ.get("P2PSIM_NOTEBOOK_FIGURES")
agents, zeta = 32, 50.0


def metropolis(topology):
    """W of a graph, a full matrix."""
    return mixing_matrix(draw_links(topology, TopologyInputs()), "metropolis").toarray()


mixing = {
    "complete": metropolis(p2psim.Complete(agents=agents)),
    "hypercube": metropolis(p2psim.Hypercube(agents=agents)),
    "one-peer exponential": one_peer_exponential(agents),
    "ring": metropolis(p2psim.Ring(agents=agents)),
    "binary tree": metropolis(p2psim.BinaryTree(agents=agents)),
    "star": metropolis(p2psim.StarOfAgents(agents=agents)),
}

# %% [markdown]
# The gap of a changing graph is that of one turn of its five rounds: one minus the second largest singular value of
# their product, per round by the geometric mean. That product is the mean of all models, so that the gap is
# 1, the largest possible, as on the complete graph.


# %%
def gap(rounds):
    """One less the factor by which mixing alone brings models together in a round, in the long run."""
    product = np.eye(agents)
    for matrix in rounds if isinstance(rounds, list) else [rounds]:
        product = matrix @ product
    second = np.linalg.svd(product, compute_uv=False)[1]
    second = second if second > 1e-12 else 0.0  # rounding
    return 1 - second ** (1 / (len(rounds) if isinstance(rounds, list) else 1))


rows = []
for name, rounds in mixing.items():
    best = best_step(rounds, zeta)
    rows.append(
        {
            "graph": name,
            "gap": gap(rounds),
            "n_W(0.9)": effective_neighbours(rounds, 0.9),
            "n_W(0.99)": effective_neighbours(rounds, 0.99),
            "rate at 0.02": rate(rounds, 0.02, zeta),
            "rate at 0.05": rate(rounds, 0.05, zeta),
            "best step": best.step,
            "best rate": best.rate,
        }
    )
table = pd.DataFrame(rows).set_index("graph")
table.round(4)

# %% [markdown]
# Sorted by the best rate, the effective numbers of neighbours are sorted too. Gaps are not: the star's is more than
# twice the ring's, and its agents can learn at less than half of the ring's rate; the gap of one-peer exponential is
# that of the complete graph.

# %%
ordered = table.sort_values("best rate", ascending=False)
assert ordered["n_W(0.99)"].is_monotonic_decreasing
assert not ordered["gap"].is_monotonic_decreasing
assert table.loc["star", "gap"] > 2 * table.loc["ring", "gap"]
assert table.loc["star", "best rate"] < table.loc["ring", "best rate"] / 2

# %%
steps = np.geomspace(0.005, 0.9, 150)


def plain_numbers(axis):
    """Name 1, 2 and 5 times powers of ten on a logarithmic axis."""
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(ticker.NullFormatter())


with style.look():
    figure, panels = plt.subplots(1, 3, figsize=(13.5, 4.6), width_ratios=(1.5, 1, 1))
    curves, by_gap, by_neighbours = panels
    for number, (name, rounds) in enumerate(mixing.items()):
        look, best = style.line_style(number), table.loc[name]
        rates = np.array([rate(rounds, step, zeta) for step in steps])
        curves.plot(steps, np.maximum(rates, 1e-9), label=name, **{**look, "marker": None})
        for panel, value in (
            (curves, best["best step"]),
            (by_gap, best["gap"]),
            (by_neighbours, best["n_W(0.99)"]),
        ):
            panel.plot(value, best["best rate"], **{**look, "linestyle": "none"}, markersize=8)
    alone = np.array([rate_alone(step, zeta) for step in steps])
    curves.plot(steps, np.maximum(alone, 1e-9), color="grey", linewidth=1, label="alone")
    for panel in panels:
        panel.set(xscale="log", yscale="log", ylim=(0.01, 0.6))
        plain_numbers(panel.xaxis)
        plain_numbers(panel.yaxis)
    by_gap.set(xlim=(0.006, 1.6), ylim=(0.04, 0.6))
    by_neighbours.set(xlim=(4.5, 36), ylim=(0.04, 0.6))
    curves.set(xlabel="step size η", ylabel="rate per round", title="rate by step size; mark: the best")
    by_gap.set(xlabel="spectral gap 1 − λ₂", ylabel="best rate per round", title="best rate by spectral gap")
    by_neighbours.set(xlabel="n_W at γ = 0.99", title="best rate by effective neighbours")
    curves.legend(loc="upper left", fontsize="small")
    figure.tight_layout()
    if figures:
        figure.savefig(Path(figures) / "study_right_number.png", dpi=120)
plt.show()
