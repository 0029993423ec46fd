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
# # Three banks
#
# Three banks hold 3,000 loans each. A central learner wants to predict interest rates, and sees noisy
# gradients only. This notebook runs the shipped scenario `three_banks` at small size and looks at what comes
# out. The number of replicas is `P2PSIM_NOTEBOOK_REPLICAS` (5 if unset); the shipped scenario has 20.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

import p2psim
from p2psim.cli.arguments import read_template
from p2psim.privacy.allocations import binomial_cap
from p2psim.theory.noise_floor import fit_power_law

replicas = int(os.environ.get("P2PSIM_NOTEBOOK_REPLICAS", "5"))
folder = Path(tempfile.mkdtemp(prefix="three-banks-"))
sns.set_theme(style="whitegrid")

# %% [markdown]
# ## The scenario, and its run

# %%
text = read_template("three_banks")
print(text)

# %%
scenario = p2psim.Scenario.parse(text, overrides=[f"replicas={replicas}"])
result = p2psim.run(scenario, folder / "banks", progress=False)
result.summary()[["privacy.epsilon", "replicas", "q25", "median", "q75", "epsilon spent", "budget", "flags"]]

# %% [markdown]
# **A reader may conclude**: ten times the budget buys about a hundred times less ψ, as long as noise is what
# holds ψ up. No row has a flag, so each bank's promise holds as it was made. The column `epsilon spent` is what the
# most exposed bank has spent: about a third of its budget, since the budget was spread over 1,000 answers and
# a bank gives about 333.

# %% [markdown]
# ## Fitness against commits
#
# Median and quartiles over replicas.

# %%
fitness = result.metrics.query("metric == 'relative_fitness'").astype({"privacy.epsilon": int})
axes = sns.lineplot(
    fitness, x="step", y="value", hue="privacy.epsilon", style="privacy.epsilon", palette="colorblind",
    estimator="median", errorbar=("pi", 50),
)  # fmt: skip
axes.set(yscale="log", xlabel="commits k", ylabel="relative fitness ψ (dimensionless)")
plt.show()

# %% [markdown]
# **A reader may conclude**: the curves start as one, because all cells share clocks and unit noise and noise
# does not matter yet. Each curve then levels off at the height that its noise sets. With ε = 1,000 that level is not
# reached in 1,000 commits: there it is T, and not privacy, that limits the model.

# %% [markdown]
# ## Fitness against ε

# %%
last = fitness[fitness["step"] == fitness["step"].max()]
medians = last.groupby("privacy.epsilon")["value"].median()
law = fit_power_law(medians.index, medians)
line = np.geomspace(medians.index.min(), medians.index.max())
figure, axes = plt.subplots()
axes.plot(medians.index, medians, "o", label="median")
axes.plot(line, law(line), "--", label=f"slope {law.slope:.2f} [{law.low:.2f}, {law.high:.2f}]")
axes.set(xscale="log", yscale="log", xlabel="privacy budget ε per owner", ylabel="final relative fitness ψ")
axes.legend()
plt.show()
print(f"ψ ∝ ε^{law.slope:.2f}")

# %% [markdown]
# **A reader may conclude**: ψ falls nearly as ε⁻², as a noise floor does, whose variance is proportional to 1/ε².
# The interval says how well three medians lie on a line, and not how much they would move with other
# replicas.

# %% [markdown]
# ## Who answered when

# %%
events = result.events.query("cell == 0 and replica == 0")
commits = events[events["kind"] == "commit"]
figure, axes = plt.subplots(figsize=(9, 2))
axes.plot(commits["time"][:150], commits["peer"][:150], "|", markersize=14)
axes.set(xlabel="simulated time (mean clock periods)", ylabel="owner", yticks=[0, 1, 2])
plt.show()
gaps = commits["time"].diff().dropna()
shares = commits["peer"].value_counts(normalize=True).sort_index()
print(f"mean gap {gaps.mean():.3f}, standard deviation {gaps.std():.3f}; expected 1/3 for both")
print(shares.round(3).to_dict())

# %% [markdown]
# **A reader may conclude**: owners answer in no order, each about a third of the time, with exponential gaps
# (mean and standard deviation agree), as three independent Poisson clocks of rate 1 give.

# %% [markdown]
# ## The ledger

# %%
ledger = result.ledger.query("replica == 0")
ledger[
    ["privacy.epsilon", "agent", "releases", "lost", "budget", "epsilon_basic", "not_private", "over_budget"]
]

# %%
assert (result.ledger["epsilon_basic"] <= result.ledger["budget"]).all()
releases = events[(events["kind"] == "send") & (events["release"] >= 0)].groupby("agent")["release"].nunique()
assert (releases.to_numpy() == ledger.query("cell == 0")["releases"].to_numpy()).all()

# %% [markdown]
# **A reader may conclude**: the account is nothing but the count of releases in the event stream, times ε/T.
# Nobody spent more than promised; about two thirds of each budget bought noise that protected no answer.

# %% [markdown]
# ## What a cap saves
#
# A bank could promise m answers instead of T, and be silent afterwards. If m is exceeded with probability
# 10⁻⁶ only, hardly anything is lost, and the noise of each answer is smaller by T/m.

# %%
print({tail: binomial_cap(1000, 1 / 3, tail) for tail in (1e-2, 1e-6)})
capped = p2psim.Scenario.parse(
    text,
    overrides=[
        f"replicas={replicas}",
        "sweep={}",
        "privacy.epsilon=10",
        "sweep.privacy.allocation=[horizon, {kind: cap, tail: 1.0e-2}, {kind: cap, tail: 1.0e-6}]",
    ],
)
compared = p2psim.run(capped, folder / "caps", progress=False)
compared.summary()[["privacy.allocation", "q25", "median", "q75", "epsilon spent", "budget"]]

# %% [markdown]
# **A reader may conclude**: at the same promise of ε = 10, a cap makes ψ several times smaller, about (T/m)²
# times where noise is all that matters. It costs nothing but silence in the rare case. The cheaper cap (10⁻²)
# is a little better still, and now and then a bank does fall silent. The column `epsilon spent` is closer to
# the budget: less of it is wasted.
