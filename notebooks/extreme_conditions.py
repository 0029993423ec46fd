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
# # Extreme conditions
#
# Ormándi, Hegedűs and Jelasity (2013) let gossip learning run where half of the messages are dropped, others take 1
# to 10 gossip periods, and agents come and go with 90 % online at a time. Here the same is done to coordinate
# descent by broadcast (`extreme_conditions`), and half of the messages are dropped under averaging (`push_sum`). At
# small size: the number of replicas is `P2PSIM_NOTEBOOK_REPLICAS` (2 if unset); the shipped scenarios have 20, and
# so have the numbers in the text. Figures are saved in the folder `P2PSIM_NOTEBOOK_FIGURES`, if it is set.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import p2psim
from p2psim.cli.arguments import read_template
from p2psim.core.intervals import mean_interval, ratio_interval
from p2psim.runs.summary import share_reached

replicas = int(os.environ.get("P2PSIM_NOTEBOOK_REPLICAS", "2"))
folder = Path(os.environ.get("P2PSIM_NOTEBOOK_RUNS") or tempfile.mkdtemp(prefix="extreme-"))
figures = os.environ.get("P2PSIM_NOTEBOOK_FIGURES")


def run(name):
    """Run a shipped scenario with so many replicas."""
    scenario = p2psim.Scenario.parse(read_template(name), overrides=[f"replicas={replicas}"])
    return p2psim.run(scenario, folder / name.replace("_", "-"), progress=False)


# %% [markdown]
# ## How much later, and to the same end?
#
# Sixty agents on a random regular graph of degree 6 hold 1 to 5 records each, all from one distribution. There is no
# privacy, so that only the network slows them down. μ is small: an agent alone learns little.

# %%
hard = run("extreme_conditions")
names = ["ideal", "half of the messages lost", "delays of 1 to 10", "online 90 % of the time", "all three"]
series = hard.metrics.astype({"metric": str})
series = series[(series["time"] % 1 == 0) & series["metric"].isin(["test_accuracy", "objective_gap"])]
panels, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for axis, (metric, of_metric) in zip(axes, series.groupby("metric"), strict=True):
    for (_, of_cell), name in zip(of_metric.groupby("cell"), names, strict=True):
        table = of_cell.pivot(index="time", columns="replica", values="value")
        if metric == "objective_gap":
            table = table / table.loc[0.0]
        middle = table.median(axis=1)
        (line,) = axis.plot(table.index, middle, label=name)
        axis.fill_between(
            table.index,
            table.quantile(0.25, axis=1),
            table.quantile(0.75, axis=1),
            alpha=0.2,
            color=line.get_color(),
        )
    axis.set(xlabel="simulated time (mean clock periods)")
    axis.grid(alpha=0.3)
axes[0].set(
    yscale="log",
    ylabel="gap to the minimum of Q_L, over that at the start,\nlower is better (median and quartiles)",
)
axes[1].set(ylabel="test accuracy, higher is better\n(median and quartiles)", ylim=(0.6, 0.96), xlim=(0, 150))
axes[1].legend()
if figures:
    panels.savefig(Path(figures) / "study_extreme_conditions.png", dpi=120)
plt.show()


# %% [markdown]
# Time until the accuracy is 0.80 and 0.85, and until the gap is a tenth and a hundredth of the start's, against the
# ideal network of the same replica. Replicas that do not reach it are reported, not left out.


# %%
def interval(found, digits=1):
    """An estimate with its 95 % interval, as text."""
    return f"{found.estimate:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def gap_times(share):
    """First recorded time at which each replica's gap was so small a share of its start."""
    rows = []
    for (cell, replica), values in series[series["metric"] == "objective_gap"].groupby(["cell", "replica"]):
        values = values.sort_values("time")
        below = values[values["value"] <= share * values["value"].iloc[0]]
        there = not below.empty
        rows.append((cell, replica, (below if there else values)["time"].iloc[0 if there else -1], there))
    return pd.DataFrame(rows, columns=["cell", "replica", "time", "reached"])


targets = {
    "accuracy .80": hard.time_to("test_accuracy", 0.80),
    "accuracy .85": hard.time_to("test_accuracy", 0.85),
    "gap 1e-1": gap_times(1e-1),
    "gap 1e-2": gap_times(1e-2),
}
for target, times in targets.items():
    ideal = times[times["cell"] == 0]
    for (_, of_cell), name in zip(times.groupby("cell"), names, strict=True):
        curve = share_reached(of_cell["time"].to_numpy(), of_cell["reached"].to_numpy())
        reach = f"{of_cell['reached'].sum()} of {len(of_cell)} reach it"
        text = f"{target}, {name}: {reach}, median {curve.quantile(0.5):.0f}"
        both = of_cell["reached"].to_numpy() & ideal["reached"].to_numpy()
        if both.all():
            found = ratio_interval(ideal["time"].to_numpy(), of_cell["time"].to_numpy())
            text += f", {interval(found, 2)} times as long"
        print(text)

# %% [markdown]
# Does it still converge? The gap at the end, and the rate at which it falls over the second half of the time.

# %%
gaps = series[series["metric"] == "objective_gap"].pivot_table(
    index="time", columns=["cell", "replica"], values="value"
)
for (_, of_cell), name in zip(gaps.T.groupby(level="cell"), names, strict=True):
    of_cell = of_cell.T
    # Where rounding is all that is left, a rate means nothing.
    until = of_cell.index[(of_cell.min(axis=1) > 1e-10 * of_cell.iloc[0].max())].max()
    fall = np.log(of_cell.loc[until] / of_cell.loc[until // 2]) / (until - until // 2)
    end = of_cell.iloc[-1] / of_cell.iloc[0]
    print(
        f"{name}: gap ends at {end.min():.1e} to {end.max():.1e} of the start's; "
        f"a tenth in {interval(mean_interval(-np.log(10) / fall.to_numpy()))} periods"
    )

# %% [markdown]
# ## Averaging under loss: push-sum, and plain
#
# Sixty agents average their local models. Push-sum keeps the mean, as long as nothing is lost; each lost message
# removes half of its sender's sum and weight. Plain averaging has no mass to lose, but one-sided averages move the
# mean. Shown is the mean square distance of the agents' models from the true mean, over that at the start.

# %%
mean = run("push_sum")
ways = {
    ("averaging", "push", "none"): "averaging, push",
    ("averaging", "push-pull", "none"): "averaging, push-pull",
    ("push-sum", "push", "none"): "push-sum",
    ("push-sum", "push", "same"): "push-sum, sent again",
}
order = list(ways.values())
rows = []
for number, cell in enumerate(mean.described.cells):
    way = order[number // 4]
    for replica in range(mean.scenario.replicas):
        models = mean.models[number, replica]
        true = models[0].mean(axis=0)
        errors = ((models - true) ** 2).sum(axis=-1).mean(axis=-1)
        rows.append((way, cell.swept["network.channel.loss"], replica, errors[-1] / errors[0]))
errors = pd.DataFrame(rows, columns=["way", "loss", "replica", "error"])


def geometric(values):
    """Geometric mean with its 95 % interval, as text."""
    found = mean_interval(np.log(np.asarray(values)))
    return "{:.1e} [{:.1e}, {:.1e}]".format(*np.exp([found.estimate, found.low, found.high]))


print(errors.groupby(["loss", "way"], sort=False)["error"].agg(geometric).unstack("loss").to_string())
wide = errors.pivot(index=["loss", "replica"], columns="way", values="error")
for loss, values in wide.groupby(level="loss"):
    found = ratio_interval(values["averaging, push-pull"].to_numpy(), values["push-sum"].to_numpy())
    print(
        f"loss {loss}: error of push-sum over that of push-pull averaging "
        f"{found.estimate:.2g} [{found.low:.2g}, {found.high:.2g}]"
    )

# %%
panel, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for way, marker in zip(order, "os^D", strict=True):
    found = [
        mean_interval(np.log(values.to_numpy()))
        for _, values in errors[errors["way"] == way].groupby("loss")["error"]
    ]
    middle, low, high = (np.exp([getattr(one, end) for one in found]) for end in ("estimate", "low", "high"))
    axes.errorbar(
        sorted(errors["loss"].unique()),
        middle,
        [middle - low, high - middle],
        marker=marker,
        capsize=3,
        label=way,
    )
axes.set(
    yscale="log",
    xlabel="share of messages lost",
    ylabel="error of the agents' models at the end, over that\nat the start (geometric mean, 95 % interval)",
)
axes.grid(alpha=0.3)
axes.legend()
if figures:
    panel.savefig(Path(figures) / "study_push_sum.png", dpi=120)
plt.show()

# %% [markdown]
# **A reader may conclude** (20 replicas, 95 % intervals for each number by itself):
#
# - Nothing stops descent: every replica reaches an accuracy of 0.85 under every condition, and gaps go on falling at
#   a steady rate, a tenth in 30 periods on an ideal network and in 208 [207, 209] with all three troubles together.
# - Half of the messages lost takes 1.8 [1.7, 1.9] times as long to an accuracy of 0.85: as if everybody were heard
#   half as often. Churn with 90 % online takes 1.3 [1.2, 1.3], delays of 1 to 10 periods 4.1 [3.9, 4.4], all three
#   together 6.0 [5.6, 6.3] times as long, less than the product of the three (9.3). Delay costs most.
# - Without loss push-sum is the best average; lost mass never comes back. From three messages in ten lost on it is
#   worse than push-pull averaging (1.9 [1.2, 2.9] times the error at 0.3, 3.7 [2.2, 6.2] at 0.5), unless messages are
#   sent again: then loss hardly matters.
