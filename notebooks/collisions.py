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
# # One radio channel
#
# A learner asks twenty owners once a period; their answers share one channel. What do collisions cost in
# throughput, in speed of learning, and in privacy? An answer that is lost was charged all the same. The shipped
# scenario `collisions` at small size; the number of replicas is `P2PSIM_NOTEBOOK_REPLICAS` (5 if unset), the study
# has 20.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

import p2psim
from p2psim.study.intervals import mean_interval
from p2psim.study.templates import read_template

replicas = int(os.environ.get("P2PSIM_NOTEBOOK_REPLICAS", "5"))
folder = Path(tempfile.mkdtemp(prefix="collisions-"))
sns.set_theme(style="whitegrid")

# %%
scenario = p2psim.Scenario.parse(read_template("collisions"), overrides=[f"replicas={replicas}"])
result = p2psim.run(scenario, folder / "run", progress=False)
collision, airtime = "network.channel.collision", "network.channel.airtime"
last = (
    result.metrics.sort_values("time")
    .groupby([collision, airtime, "replica", "metric"], observed=True)
    .last()
)
ends = last["value"].unstack("metric").reset_index()
ends.groupby([collision, airtime], observed=True)[
    ["throughput", "collision_rate", "releases", "releases_wasted"]
].mean()

# %% [markdown]
# ## Throughput and wasted privacy against load
#
# The load is 20 answers of the given airtime in a period of length 1: from .05 to .8 of the channel, beside the
# queries.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True)
for axis, metric in zip(axes, ("throughput", "releases_wasted"), strict=True):
    sns.lineplot(
        ends, x=airtime, y=metric, hue=collision, style=collision, markers=True, errorbar=("ci", 95), ax=axis,
        palette="colorblind",
    )  # fmt: skip
    axis.set(xlabel="airtime of an answer (periods)", ylabel=metric.replace("_", " "))
plt.show()

# %% [markdown]
# ## Time and privacy for the same learning
#
# All runs end with 400 commits, or when all budgets are spent; so the time of the end is the speed, and releases by
# commits the price.

# %%
final = (
    result.metrics.groupby([collision, airtime, "replica"], observed=True)[["step", "time"]]
    .max()
    .reset_index()
)
final = final.merge(ends[[collision, airtime, "replica", "releases"]])
final["time for a commit"] = final["time"] / final["step"]
final["releases for a commit"] = final["releases"] / final["step"]
for name in ("time for a commit", "releases for a commit"):
    print(name)
    for key, group in final.groupby([collision, airtime], observed=True):
        interval = mean_interval(group[name].to_numpy())
        print(
            f"  {key[0]:>13} {key[1]:<7g} {interval.estimate:6.3f} [{interval.low:.3f}, {interval.high:.3f}]"
        )

# %%
at = final[airtime] == final[airtime].max()
worst = final[at & (final[collision] == "aloha")]["releases for a commit"]
assert worst.mean() > 2 * final[at & (final[collision] == "carrier-sense")]["releases for a commit"].mean()
print(np.round(worst.mean(), 2))

# %% [markdown]
# **A reader may conclude** (20 replicas, 95 % intervals, `docs/studies.md`): below a load of .05 all kinds are nearly
# alike. As the load grows, pure ALOHA's throughput peaks at about .17 and then falls; at a load of .8 a commit costs
# 5.5 [5.3, 5.6] releases and takes .275 [.269, .282] periods. Slotted ALOHA takes 2.3 [2.3, 2.4] and .119 [.118, .121],
# carrier sensing 1.04 [1.04, 1.05] and .072 [.070, .074]. Whoever pays for answers with privacy should not let them
# collide.
