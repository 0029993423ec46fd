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
# # Coalitions and budgets as a market
#
# Four lenders of different sizes could train one model together. Which of them should? What does each add? And what
# is its ε worth to the others? Forecasts answer without a simulation: each coalition takes a few milliseconds.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

import p2psim
from p2psim.analysis.forecasts.collaboration import Coalitions
from p2psim.analysis.forecasts.forecast import setting
from p2psim.simulation.workspace import Workspace
from p2psim.theory.star import sampled_shapley

sns.set_theme(style="whitegrid")

# %% [markdown]
# ## Who they are
#
# Records are generated; labels are noisy. Each has ε = 20, and budgets for the answers that it will give (`cap`).

# %%
TEXT = """
name: lenders
seed: 2020
network: {topology: {kind: star, agents: 4}, exchange: request}
data:
  source: {kind: linear-regression, dimension: 5, points: {0: 20000, 1: 10000, 2: 5000, 3: 1000}, noise: 0.3}
  public: {last: 500}
  scale: {x: {norm: l1, bound: 1.0, at: {quantile: 0.95}}, y: {center: true, bound: 1.0}}
learning:
  algorithm: {kind: async-star, horizon: 400, rho: {h: 0.3}, theta_max: 3}
  loss: squared
  regularizer: {l2: 1.0e-3}
privacy:
  mechanism: laplace
  epsilon: 20
  sensitivity: {kind: declared, bound: 2.0}
  allocation: {kind: cap, tail: 1.0e-6}
  accountant: basic
record: {metrics: [relative_fitness], every: 100}
"""
scenario = p2psim.Scenario.parse(TEXT)
case = Workspace(Path(tempfile.mkdtemp())).case(scenario, 0)
game = Coalitions(setting(scenario, case))

# %% [markdown]
# ## What coalitions reach
#
# Expected ψ on everybody's records, the best first. One lender alone trains without noise.

# %%
table = pd.DataFrame(
    {"coalition": " + ".join(one.members), "ψ": one.psi, "members who gain": one.gaining}
    for one in game.table()
)
table.head(15)

# %% [markdown]
# **A reader may conclude**: all four together do best, and each of them gains. But three lenders can be worse than
# one: a small lender adds as much noise as a large one, and less information.

# %% [markdown]
# ## What each adds
#
# The worth of a coalition is the amount by which it lowers ψ below that of no model. Shapley values share the worth
# of all: what a lender adds to those before it, over all orders in which they could join. Most of it is the first
# lender's step from no model to some model, which any lender can make. So the values differ little, and only the
# differences matter.

# %%
exact = game.shapley()
sampled = sampled_shapley(game.worth, game.owners, 500, np.random.default_rng(1))
shares = pd.DataFrame(
    {
        "records": game.setting.model.records.astype(int),
        "Shapley value": exact.values,
        "less an equal share": exact.values - exact.values.mean(),
        "sampled": sampled.values,
        "± s.e.": sampled.errors,
    }
)
shares.round(6)

# %%
assert np.isclose(exact.values.sum(), game.worth(game.all))
assert (np.abs(sampled.values - exact.values) <= 4 * sampled.errors + 1e-12).all()

# %% [markdown]
# **A reader may conclude**: 500 random orders give the values to within their errors. Beyond 12 owners only sampling
# is feasible: the number of coalitions doubles with each owner, and the number of orders to sample does not.

# %% [markdown]
# ## What a budget is worth
#
# How ψ of all falls with one lender's ε, the others at 20. The dot is the least ε at which the others do no worse
# with it than without it. The slope at ε = 20 is what another unit of ε is worth to everybody.

# %%
figure, axes = plt.subplots()
budgets = np.geomspace(2, 100, 25)
for owner in range(game.owners):
    psi = []
    for epsilon in budgets:
        changed = game.budgets.copy()
        changed[owner] = epsilon
        psi.append(game.psi_with(game.all, changed))
    (line,) = axes.plot(
        budgets, psi, label=f"lender {owner}, {int(game.setting.model.records[owner]):,} records"
    )
    least = game.least_budget(owner)
    if least:
        axes.plot(least, game.psi(game.all & ~(1 << owner)), "o", color=line.get_color())
axes.set(xscale="log", yscale="log", xlabel="ε of one lender, the others at 20", ylabel="expected ψ of all")
axes.legend()
plt.show()

# %%
prices = pd.DataFrame(
    {
        "least ε": [game.least_budget(owner) for owner in range(game.owners)],
        "−∂ψ/∂ε at 20": [game.marginal(owner) for owner in range(game.owners)],
    }
)
prices.round(8)

# %% [markdown]
# **A reader may conclude**: the smaller a lender, the more ε it must grant before the others want it: the largest is
# welcome from ε = 3 on, the smallest from 12 on. A market would pay for ε rather than for records: a unit of the
# smallest lender's ε is worth somewhat more than one of the largest's, its answers being the noisiest.
