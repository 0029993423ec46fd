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
# A learner asks twenty owners once a period; each answers after a random part of it, and all answers share one
# channel. What do collisions cost in throughput, in speed of learning, and in privacy? A lost answer is charged to
# the budget all the same.
#
# This runs the shipped scenario `collisions` with `P2PSIM_NOTEBOOK_REPLICAS` replicas (5 if unset); the scenario has
# 40, and so have the numbers in the text. Runs are kept in the folder `P2PSIM_NOTEBOOK_RUNS`, and figures saved in
# `P2PSIM_NOTEBOOK_FIGURES`, if these are set.

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import Image, display

import p2psim
from p2psim.analysis.comparison import compare_within, short
from p2psim.cli.arguments import read_template
from p2psim.core.intervals import mean_interval
from p2psim.report import notes, panels, scales, style
from p2psim.report.files import save_all

replicas = int(os.environ.get("P2PSIM_NOTEBOOK_REPLICAS", "5"))
folder = Path(os.environ.get("P2PSIM_NOTEBOOK_RUNS") or tempfile.mkdtemp(prefix="collisions-"))
figures = os.environ.get("P2PSIM_NOTEBOOK_FIGURES")
text, few = read_template("collisions"), f"replicas={replicas}"


def show(figure, name):
    """Save a figure, with its numbers as CSV, and show it."""
    path, *_ = save_all({name: figure}, figures or folder / "figures", ["png"])
    display(Image(path))


# %%
scenario = p2psim.Scenario.parse(text, overrides=[few])
result = p2psim.run(scenario, folder / "collisions", progress=False)
owners = scenario.network.topology.agents
TARGET = 0.1


def intervals(values):
    """Mean of each kind and load over replicas, with its 95 % interval."""
    rows = [
        (kind, owners * airtime, *vars(mean_interval(group.to_numpy(dtype=float))).values())
        for (kind, airtime), group in values.groupby(level=["kind", "airtime"], observed=True, sort=False)
    ]
    return pd.DataFrame(rows, columns=["kind", "load", "estimate", "low", "high"])


names = {"network.channel.collision": "kind", "network.channel.airtime": "airtime"}
metrics = result.metrics.rename(columns=names)
last = metrics.groupby(["kind", "airtime", "replica", "metric"], observed=True, sort=False)["value"].last()
ends = last.unstack("metric")
# A run ends with its 400th commit, or when all budgets are spent.
ends["commits"] = metrics.groupby(["kind", "airtime", "replica"], observed=True, sort=False)["step"].max()
reached = (
    result.time_to("relative_fitness", TARGET).rename(columns=names).set_index(["kind", "airtime", "replica"])
)
assert reached["reached"].all()
measured = {
    "throughput": ends["throughput"],
    "releases wasted": ends["releases_wasted"],
    "releases a commit": ends["releases"] / ends["commits"],
    f"periods to ψ ≤ {TARGET:g}": reached["time"],
}
tables = {name: intervals(values) for name, values in measured.items()}
for name, table in tables.items():
    texts = table.apply(lambda row: f"{row.estimate:.3g} [{row.low:.3g}, {row.high:.3g}]", axis=1)
    print(
        name,
        table.assign(text=texts).pivot(index="load", columns="kind", values="text"),
        sep="\n",
        end="\n\n",
    )

# %% [markdown]
# ## What theory says
#
# An answer goes out at a time that is uniform in a window of W = 0.9 periods. It is heard if none of the other N − 1
# begins within one airtime τ of it (pure ALOHA), or in its slot, of which there are W/τ (slotted, about: the first
# and last slots are cut). Averaged over where in the window it begins, pure ALOHA's success is exactly
#
# (1/W)·∫ (1 − |(u − τ, u + τ) ∩ (0, W)|/W)^(N−1) du.

# %%
W = 0.9


def aloha(tau):
    """Chance that an answer is heard."""
    u = (np.arange(20_000) + 0.5) / 20_000 * W
    beside = np.minimum(u + tau, W) - np.maximum(u - tau, 0)
    return float(((1 - beside / W) ** (owners - 1)).mean())


loads = np.linspace(0.02, 0.8, 60)
success = {
    "aloha": np.array([aloha(load / owners) for load in loads]),
    "slotted": (1 - loads / owners / W) ** (owners - 1),
}
wasted = tables["releases wasted"]
for kind, curve in success.items():
    own = wasted[wasted["kind"] == kind]
    theory = 1 - np.interp(own["load"], loads, curve)
    print(own.assign(theory=theory, inside=(own["low"] <= theory) & (theory <= own["high"])).round(4))

# %%
told = {
    "throughput": "throughput (answers heard per time of one), higher is better",
    "releases wasted": "releases wasted (share), lower is better",
    "releases a commit": "releases per commit, lower is better",
    "periods to ψ ≤ 0.1": "clock periods to ψ ≤ 0.1, lower is better",
}
names = {
    "none": "no collisions",
    "carrier-sense": "carrier sensing",
    "slotted": "slotted ALOHA",
    "aloha": "pure ALOHA",
}
with style.look():
    figure, grid = panels.new_panels(4, "load: airtime of all answers (clock periods per period)")
    for axes, (name, values) in zip(grid, measured.items(), strict=True):
        panels.name(axes, told[name])
        theory = name in ("throughput", "releases wasted")
        for number, kind in enumerate(names):
            groups = list(values.xs(kind, level="kind").groupby(level="airtime", observed=True))
            samples = [group.to_numpy(dtype=float) for _, group in groups]
            look = {**style.line_style(number), "markersize": 4, "linestyle": "-"}
            if theory and kind in success:
                curve = success[kind]
                y = loads * curve if name == "throughput" else 1 - curve
                axes.plot(loads, y, color=look["color"], linestyle="--")
                look["linestyle"] = "none"
            at = [owners * airtime for airtime, _ in groups]
            panels.draw_means(axes, at, samples, names[kind], look)
        if not theory:
            scales.log_ticks(axes, "y")
    style.add_legend(figure, grid[3])
    style.add_footnote(figure, [f"{notes.means(replicas)} Dashed: theory."])
    show(figure, "study_collisions")

# %% [markdown]
# **A reader may conclude** (40 replicas; 95 % intervals of each mean by itself): throughput of pure ALOHA is largest
# near a load of 0.4, at 0.169 [0.166, 0.171], and falls from there on; slotted ALOHA and carrier sensing still gain
# at 0.8. Theory's shares of wasted releases lie in 8 of 10 intervals, and next to the others. A commit at a load of
# 0.8 costs 5.56 [5.46, 5.66] releases with pure ALOHA, 2.35 [2.31, 2.38] with slotted ALOHA and 1.04 [1.03, 1.04]
# with carrier sensing, all of them charged; carrier sensing's few are answers that still wait when the run ends, not
# lost ones. ψ ≤ 0.1 takes 42.0 [40.5, 43.6], 18.8 [18.3, 19.3] and 9.6 [9.1, 10.1] periods, against 8.2 [8.0, 8.4]
# without collisions.
#
# ## At equal commits
#
# Paired with the channel without collisions.

# %%
pairs = compare_within(result, {"network.channel.collision": "none"})
pairs = pairs[pairs["metric"] == "relative_fitness"]
short(pairs).drop(columns=["model", "metric", "not finite", "correlation"])

# %% [markdown]
# **A reader may conclude**: lost answers do no harm to a model that waits for others. After 400 commits, or when all
# budgets are spent, as pure ALOHA's are at a load of 0.8, no interval of pure ALOHA leaves out zero. Four of the
# other ten do, two of slotted ALOHA (loads 0.2 and 0.4; ratios 1.33 [0.94, 1.90] and 1.38 [0.97, 1.98]) and two of
# carrier sensing (loads 0.6 and 0.8; 1.43 [0.98, 2.07] and 1.63 [1.23, 2.15]). All 15 share one reference, so their
# errors are correlated; those of slotted ALOHA do not grow with the load, so we draw no conclusion from them. Those
# of carrier sensing do: its answers wait for the channel, and arrive late.

# %%
late = (
    last.unstack("metric")["staleness"].groupby(level=["kind", "airtime"], observed=True, sort=False).mean()
)
late.unstack("kind").round(1)

# %% [markdown]
# At a load of 0.8 an answer by carrier sensing is 21 versions old when it arrives, one without collisions 9.5, and
# one by pure ALOHA, where few arrive at all, 1.7.
#
#
# ## At an equal promise
#
# Above every owner may give 100 answers, whatever the channel, and most give fewer. Where it is known beforehand what
# the channel needs, owners can promise just that many: here the most that any of them gave in the runs above, at the
# load of 0.6. The budget is the same, ε = 50.

# %%
airtime = 0.03
at = {cell.swept["network.channel.collision"]: i for i, cell in enumerate(result.described.cells)
      if cell.swept["network.channel.airtime"] == airtime}  # fmt: skip
caps = {
    kind: int(result.ledger.loc[result.ledger["cell"] == cell, "releases"].max()) for kind, cell in at.items()
}
fitted = {}
for kind, cap in caps.items():
    own = [
        few, "sweep={}", f"network.channel={{airtime: {airtime}, collision: {kind}, shared: true}}",
        f"privacy.allocation={{kind: cap, releases: {cap}}}",
    ]  # fmt: skip
    one = p2psim.run(p2psim.Scenario.parse(text, overrides=own), folder / f"fitted-{kind}", progress=False)
    fitted[kind] = one.metrics.query("metric == 'relative_fitness'").groupby("replica")["value"].last()
rows = []
for kind, values in fitted.items():
    mean = mean_interval(values.to_numpy())
    ratio = mean_interval(np.log(values.to_numpy()) - np.log(fitted["none"].to_numpy()))
    rows.append(
        (
            kind,
            caps[kind],
            mean.estimate,
            mean.low,
            mean.high,
            *np.exp([ratio.estimate, ratio.low, ratio.high]),
        )
    )
promised = pd.DataFrame(
    rows, columns=["kind", "answers promised", "ψ", "low", "high", "ratio", "ratio low", "ratio high"]
)
promised.round(4)

# %%
assert caps["none"] <= caps["carrier-sense"] < caps["slotted"] < caps["aloha"]

# %% [markdown]
# **A reader may conclude** (40 replicas, 95 % intervals): owners that know the channel beforehand promise 20 answers
# without collisions, 23 with carrier sensing, 41 with slotted and 83 with pure ALOHA for the same 400 commits. At the
# same budget ψ is then 1.4 [1.0, 1.9], 2.5 [1.9, 3.4] and 7.4 [5.2, 10.6] times that without collisions: collisions
# waste privacy budget, and the waste becomes noise. (The promise comes from earlier runs of the same distribution; it
# uses no records.)
