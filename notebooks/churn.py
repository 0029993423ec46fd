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
# # Churn and targeted removal
#
# Agents leave, arrive late, or return; or the most important ones are removed. The shipped scenarios
# `targeted_removal` and `churn` at small size: the number of replicas is `P2PSIM_NOTEBOOK_REPLICAS` (2 if unset); the
# shipped scenarios have 20, and so have the numbers in the text. Figures are saved in the folder
# `P2PSIM_NOTEBOOK_FIGURES`, if it is set.

# %%
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import Image, display

import p2psim
from p2psim.analysis.comparison import compare_within
from p2psim.cli.arguments import read_template
from p2psim.core.intervals import mean_interval
from p2psim.report import notes, panels, style
from p2psim.report.figures.bands import band_figure
from p2psim.report.files import save_all
from p2psim.report.source import source

replicas = int(os.environ.get("P2PSIM_NOTEBOOK_REPLICAS", "2"))
folder = Path(os.environ.get("P2PSIM_NOTEBOOK_RUNS") or tempfile.mkdtemp(prefix="churn-"))
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
# ## Who is removed
#
# A fifth of sixty agents is removed at time 2, when each has woken twice on average, and is not protected by privacy.
# Both graphs have two links an agent; one has hubs. The measure is the accuracy of those that stay, at the end, minus
# that of the same agents when no agent leaves.

# %%
removal = run("targeted_removal")
own = removal.metrics[removal.metrics["agent"].notna()]
last = own.groupby(["cell", "replica", "agent"], observed=True)["value"].last()
left = pd.read_parquet(
    removal.path / "events.parquet", columns=["cell", "replica", "agent"], filters=[("kind", "==", "leave")]
)
cells = [
    (cell.swept["network.topology"].partition("(")[0], cell.swept["network.availability"], number)
    for number, cell in enumerate(removal.described.cells)
]
reference = {graph: number for graph, kind, number in cells if kind == "always"}
rows = []
for graph, kind, number in cells:
    by = "nobody" if kind == "always" else kind.partition("by=")[2].partition(",")[0] or "degree"
    if by == "nobody":
        continue
    for replica in range(replicas):
        gone = left[(left["cell"] == number) & (left["replica"] == replica)]["agent"]
        assert len(gone) == 12
        change = (last[number, replica] - last[reference[graph], replica]).drop(gone)
        rows.append((graph, by, replica, change.mean(), change.nsmallest(len(change) // 10).mean()))
changes = pd.DataFrame(
    rows, columns=["graph", "removed by", "replica", "change", "change of the worst tenth"]
)


def with_interval(values, digits=3):
    """Mean of independent replicas, with its 95 % interval, as text."""
    found = mean_interval(np.asarray(values))
    return f"{found.estimate:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


groups = changes.groupby(["graph", "removed by"], sort=False)
print(groups[["change", "change of the worst tenth"]].agg(with_interval).to_string())

# %% [markdown]
# Against random removal, in the same replicas. In the random regular graph all degrees are equal, so that `degree`
# must choose as `random` does.

# %%
wide = changes.pivot(index=["graph", "replica"], columns="removed by", values="change")
for graph, values in wide.groupby(level="graph", sort=False):
    for by in ("degree", "betweenness", "records"):
        print(f"{graph}, by {by} less at random: {with_interval(values[by] - values['random'])}")

# %% [markdown]
# **A reader may conclude** (20 replicas, 95 % intervals for each number by itself): in a graph with hubs, removing
# hubs costs those who stay 0.047 [0.041, 0.053] of accuracy, three times what random removal costs, 0.015 [0.011,
# 0.019]; the worst tenth of them lose 0.127 [0.109, 0.144]. Degree and betweenness do the same harm, since in these
# graphs they select nearly the same agents. Removing those with the most records is not shown to be worse than
# removing anybody: −0.001 [−0.006, 0.005], even though agents hold 2 to 60; nor does betweenness matter where there
# are no hubs, 0.000 [−0.001, 0.002]. The others suffer from the lost links.

# %%
kinds = ["random", "records", "betweenness", "degree"]
with style.look():
    figure, axes = style.new_axes()
    axes.axhline(0, color="grey", linewidth=0.8)
    for number, (graph, of_graph) in enumerate(changes.groupby("graph", sort=False)):
        samples = [100 * of_graph.loc[of_graph["removed by"] == by, "change"].to_numpy() for by in kinds]
        name = {"scale-free": "scale-free graph"}.get(graph, "random regular graph")
        look = {**style.line_style(number), "linestyle": "none"}
        panels.draw_means(axes, np.arange(4) + 0.16 * (number - 0.5), samples, name, look)
    axes.set_xticks(range(4), ["at random", "by most records", "by betweenness", "by most neighbours"])
    below = "how the fifth of the agents that is removed was chosen"
    change = "change in accuracy (percentage points)"
    title = "What those who stay lose when others are removed"
    style.finish(figure, axes, below, change, title, [notes.means(replicas)])
    show(figure, "study_targeted_removal")

# %% [markdown]
# ## Coming back, coming late, leaving
#
# Under `churn` with ε = 10 each agent may touch its records three times, and then averages what it hears; with ε =
# .inf it learns at every wake. Under `renewal` an agent is online for 10 periods and offline for 10 periods, on
# average; in `join` half of the agents arrive between 20 and 50; in `leave` half leave for good. A model of zeros
# predicts no class.

# %%
churn = run("churn")
series = churn.metrics[churn.metrics["metric"] == "test_accuracy"].astype({"metric": str})
series = series[series["time"] % 1 == 0]
names = {
    "always": "always online",
    "renewal(rejoin=stale, up=10, down=10)": "come and go: old model",
    "renewal(rejoin=reset, up=10, down=10)": "come and go: zeros",
    "renewal(rejoin=fetch, up=10, down=10)": "come and go: a neighbour's",
    "join(rejoin=stale, after=uniform=[20, 50], share=0.5)": "half come late: old model",
    "join(rejoin=fetch, after=uniform=[20, 50], share=0.5)": "half come late: a neighbour's",
    "leave(after=exponential=30, share=0.5)": "half leave for good",
}
material = source(
    churn, against="time", heading="Accuracy of all agents, by absence and the model they return with"
)
material = replace(material, values={"network.availability": names})
with style.look():
    show(band_figure(material, ["test_accuracy"], ""), "study_churn")

# %% [markdown]
# An agent that is reset has a model of zeros until it wakes. Of an agent that is online for exponential times of mean
# u and offline for times of mean d, with a clock of rate 1, a share 1/(1 + u) of its stays ends before it wakes. So
# it has not woken since its last return with probability u/(u + d)·1/(1 + u) + d/(u + d)·1/(1 + u) = 1/(1 + u) = 1/11
# = 0.091. Zeros predict no class, and are right by chance, half of the time. If reset costs nothing but that, this
# share of what is above one half is lost. From time 30 on:

# %%
late = series[series["time"] >= 30].pivot_table(
    index=["privacy.epsilon", "replica", "time"],
    columns="network.availability",
    values="value",
    observed=True,
)
stale, reset = "renewal(up=10, down=10)", "renewal(rejoin=reset, up=10, down=10)"
lost = (late[stale] - late[reset]) / (late[stale] - 0.5)
lost = lost.groupby(level=["privacy.epsilon", "replica"]).mean()
print(lost.groupby(level="privacy.epsilon").agg(with_interval), 1 / 11)

# %% [markdown]
# Differences at the end, in the same replicas: from `stale`, for those who return and those who come late, and from
# nobody ever going.

# %%
columns = [
    "privacy.epsilon",
    "network.availability",
    "metric",
    "a",
    "b",
    "difference",
    "low",
    "high",
    "pairs",
]
wanted = ["test_accuracy", "worst_decile_accuracy"]
for kind, old in (("renewal", stale), ("join", "join(after=uniform=[20, 50], share=0.5)")):
    table = compare_within(churn, {"network.availability": old})
    table = table[table["network.availability"].str.startswith(kind) & table["metric"].isin(wanted)]
    print(table[columns].round(3).to_string(index=False))
table = compare_within(churn, {"network.availability": "always"})
print(table[table["metric"].isin(wanted)][columns].round(3).to_string(index=False))

# %% [markdown]
# **A reader may conclude**:
#
# - Forgetting costs most. Reset takes 0.032 [0.028, 0.037] off the accuracy of all at ε = 10, 0.034 [0.029, 0.040]
#   without privacy, and leaves the worst tenth at 0.56 and 0.59. The share that is lost from time 30 on, 0.087
#   [0.078, 0.096] and 0.086 [0.077, 0.095], is the 0.091 of agents that have not woken since they returned: one wake
#   repairs it, since neighbours' models are still known.
# - Fetching a neighbour's model instead of keeping the old one gains little in the end, 0.002 [0.000, 0.003] at ε =
#   10 and 0.002 [0.001, 0.004] without privacy, and more early on; the worst tenth gain 0.014 [0.003, 0.026] without
#   privacy, and at ε = 10 no gain is shown, 0.009 [−0.001, 0.018]. For those who come late, no difference is shown at
#   the end.
# - Without privacy, agents that come late catch up: the end is 0.003 [0.003, 0.004] below that of a network where all
#   were there from the start. At ε = 10 it is 0.055 [0.039, 0.070] below: the others have spent their budgets, and
#   can only average what the newcomers' three noisy releases bring.
# - Agents that leave cost about as much as agents that come and go, 0.036 [0.027, 0.045] at ε = 10 and 0.020 [0.017,
#   0.023] without privacy; but the worst tenth, which left before it had learned, loses 0.145 [0.113, 0.176] and
#   0.102 [0.077, 0.127]. All agents are counted here, whether they have left or not.
