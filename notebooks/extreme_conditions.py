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

import numpy as np
import pandas as pd
from IPython.display import Image, display

import p2psim
from p2psim.cli.arguments import read_template
from p2psim.core.intervals import mean_interval, ratio_interval
from p2psim.report import notes, panels, style
from p2psim.report.figures.bands import band_figure
from p2psim.report.files import save_all
from p2psim.report.source import source
from p2psim.runs.summary import share_reached

replicas = int(os.environ.get("P2PSIM_NOTEBOOK_REPLICAS", "2"))
folder = Path(os.environ.get("P2PSIM_NOTEBOOK_RUNS") or tempfile.mkdtemp(prefix="extreme-"))
figures = os.environ.get("P2PSIM_NOTEBOOK_FIGURES")


def show(figure, name):
    """Save a figure, with its numbers as CSV, and show it."""
    path, *_ = save_all({name: figure}, figures or folder / "figures", ["png"])
    display(Image(path))


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
material = source(hard, against="time", heading="Coordinate descent under loss, delay and churn")
with style.look():
    show(band_figure(material, ["objective_gap", "test_accuracy"], ""), "study_extreme_conditions")


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
with style.look():
    figure, axes = style.new_axes()
    axes.set_yscale("log")
    for number, way in enumerate(order):
        by_loss = errors[errors["way"] == way].groupby("loss")["error"]
        samples = [values.to_numpy() for _, values in by_loss]
        losses = sorted(errors["loss"].unique())
        panels.draw_means(axes, losses, samples, way, style.line_style(number), geometric=True)
    label = "error of the agents' models at the end, over that at the start, lower is better"
    remark = notes.means(replicas, "geometric mean")
    style.finish(figure, axes, "share of messages lost", label, "Four ways of averaging under loss", [remark])
    show(figure, "study_push_sum")

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
