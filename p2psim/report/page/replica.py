"""What a page holds of its recorded replica: events of a stretch of time, links, agents, and findings in words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from p2psim.core.events import COLLISION, COMMIT, DELIVER, DROP, JOIN, LEARNER, LEAVE, LOSS, OFFLINE
from p2psim.core.printing import counted
from p2psim.report.page.encoding import Packer
from p2psim.report.page.recording import BINS, MOST_EVENTS, MOST_NODES, Recording, account, layout
from p2psim.report.words import by_worth
from p2psim.runs.summary import rises
from p2psim.scenario.record import label_of

#: Links that a page holds at most.
MOST_LINKS = 20_000
#: Values of metrics of single agents that it holds at most.
MOST_VALUES = 400_000
#: Points of each curve of the replica that it holds at most.
MOST_POINTS = 2_000


def window(held: Recording, begin: float | None, end: float | None) -> tuple[int, int]:
    """First event that a page holds, and the one after its last."""
    times = held.events["time"]
    first = 0 if begin is None else int(np.searchsorted(times, begin, "left"))
    stop = times.size if end is None else int(np.searchsorted(times, end, "right"))
    return first, min(max(stop, first), first + MOST_EVENTS)


def replica(held: Recording, packer: Packer, begin: float | None, end: float | None) -> dict[str, Any]:
    """Plain values about a replica; arrays go to the packer."""
    events, n = held.events, held.n
    first, stop = window(held, begin, end)
    _add_events(held, packer, first, stop)
    _add_overview(held, packer)
    a, b = (held.links[name].to_numpy(np.int64) for name in ("a", "b"))
    packer.add("layout", layout(n, a, b, held.star))
    drawn = len(held.links) <= MOST_LINKS and n <= MOST_NODES and not held.star
    changing = "begin" in held.links and held.links["begin"].notna().any()
    for name in ("a", "b", *(("begin", "end") if changing else ())):
        values = held.links[name].to_numpy()
        packer.add(f"link/{name}", values if drawn else values[:0])
    for name, values in zip(("agent", "begin", "end"), held.absences, strict=True):
        packer.add(f"away/{name}", values)
    for name, values in zip(("begin", "end"), held.rounds, strict=True):
        packer.add(f"round/{name}", values)
    packer.add("limit", held.limits)
    if (spending := held.spending) is not None:
        packer.add("spent/count", spending[0].T)
        packer.add("spent/epsilon", spending[1].T.astype(float))
    counts = account(held)
    columns = _add_agents(held, packer, counts)
    labels, groups = (held.agents[name].astype(str).tolist() for name in ("label", "group"))
    setup = held.prepared.setup if held.prepared is not None else None
    channel = setup.network.channel if setup is not None else None
    air = setup.network.airtime if setup is not None else None
    return {
        "cell": held.cell,
        "replica": held.replica,
        "n": n,
        "star": held.star,
        # Agents without names have their numbers.
        "labels": [] if labels == list(map(str, range(n))) else labels,
        "groups": groups if any(groups) else [],
        "events": {"all": events.size, "first": first, "count": stop - first},
        "end": held.end,
        "learner": "central learner" if held.star else "",
        "accountant": spending[2] if spending is not None else "",
        "lacking": held.lacking,
        "links": {"all": len(held.links), "drawn": drawn, "changing": bool(changing)},
        "channel": {
            "airtime": air.loaded if air is not None else 0.0,
            "question": air.question if air is not None else 0.0,
            "collision": channel.collision if channel is not None else "none",
            "shared": bool(channel is not None and (held.star if channel.shared is None else channel.shared)),
            "latency": channel.latency
            if channel is not None and isinstance(channel.latency, int | float)
            else None,
        },
        "columns": columns,
        "series": _add_series(held, packer),
        "own": _add_own_metrics(held, packer),
        "findings": findings(held, counts),
    }


def _add_events(held: Recording, packer: Packer, first: int, stop: int) -> None:
    """Events of the stretch, and where everything stood before it."""
    events, before = held.events[first:stop], held.events[:first]
    changes = np.append(True, np.diff(events["time"]) != 0)[: events.size]
    # Many events share their moment.
    packer.add("time/moments", events["time"][changes])
    packer.add("time/changes", np.packbits(changes))
    for name in ("kind", "outcome", "agent", "peer", "version", "release"):
        packer.add(name, events[name])
    packer.add("back", np.where(events["cause"] < 0, 0, events["seq"] - events["cause"]))
    packer.add("receivers", held.receivers[first:stop])
    packer.add("late", np.packbits(held.late[first:stop]))
    packer.add("ends", np.packbits(held.ends[first:stop]))
    turns = np.isin(held.events["kind"], (JOIN, LEAVE))
    present = np.ones(held.n + 1, np.uint8)
    turned = held.events[turns]
    # Last in front: who comes back first was away before. The learner stands at the end.
    agents, places = np.unique(turned["agent"], return_index=True)
    present[agents] = turned["kind"][places] == LEAVE
    # Of several turns of an agent the last one stays.
    earlier = turned[turned["seq"] < first]
    present[earlier["agent"]] = earlier["kind"] == JOIN
    versions = np.zeros(held.n + 1, np.int64)
    np.maximum.at(versions, before["agent"], np.where(before["kind"] == COMMIT, before["version"], 0))
    made = held.releases[held.releases < first]
    packer.add("before/present", present)
    packer.add("before/versions", versions)
    packer.add("before/releases", np.bincount(held.events["agent"][made], minlength=held.n))
    ended = held.ends[:first]
    collided = (before["kind"] == DROP) & (before["outcome"] == COLLISION)
    delivered, queue = (before["kind"] == DELIVER).sum(), held.queue[:first].sum()
    sums = (held.receivers[:first].sum() - ended.sum(), collided.sum(), delivered, queue)
    packer.add("before/sums", np.array(sums, np.int64))
    packer.add("queue", held.queue[first:stop])


def _add_overview(held: Recording, packer: Packer) -> None:
    """Counts of the whole replica in stretches of time."""
    events, edges = held.events, np.linspace(0.0, held.end or 1.0, BINS + 1)
    kind, outcome = events["kind"], events["outcome"]
    dropped = held.ends & (kind == DROP)
    collided, offline = dropped & (outcome == COLLISION), dropped & (outcome == OFFLINE)
    chosen = (kind == DELIVER, dropped & ~collided & ~offline, collided, offline, kind == COMMIT)
    packer.add("overview", np.array([np.histogram(events["time"][which], edges)[0] for which in chosen]))
    who, begins, ends = held.absences
    middles = (edges[1:] + edges[:-1]) / 2
    of_agents = who >= 0
    away = np.searchsorted(np.sort(begins[of_agents]), middles, "right")
    away = away - np.searchsorted(np.sort(ends[of_agents]), middles, "right")
    packer.add("overview/away", (away / held.n).astype(np.float32))


def _add_agents(held: Recording, packer: Packer, counts: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """A column for each number of an agent."""
    named = {
        "records": "records", "degree": "neighbours", "updates": "updates", "sent": "messages sent",
        "arrived": "of them arrived", "lost": "lost", "collided": "collided", "unheard": "met someone offline",
        "missed": "missed while offline", "late": "late", "away": "share of time offline", "releases": "releases",
        "spent_at": "budget exhausted at time", "wasted": "releases wasted",
    }  # fmt: skip
    own = {name: held.agents[name].to_numpy() for name in ("records", "degree")} | counts
    own["wasted"] = held.ledger["lost"].to_numpy()
    if held.star:
        del own["degree"]
    last = held.metrics[held.metrics["agent"].notna() & (held.metrics["model"] == "main")]
    ends = last.drop_duplicates(["metric", "agent"], keep="last")
    of_privacy = [str(name) for name in held.ledger if str(name).startswith(("budget", "epsilon_"))]
    of_ledger = [name for name in of_privacy if held.ledger[name].notna().any()]
    columns = [{"name": name, "label": named[name]} for name in own]
    for name in of_ledger:
        own[name] = held.ledger[name].to_numpy(float)
        label = name.replace("epsilon_", "ε, ").replace("ε, claimed", "ε claimed")
        columns.append({"name": name, "label": label.replace("budget", "ε budget")})
    for metric, rows in ends.groupby("metric", observed=True, sort=True):
        values = np.full(held.n, np.nan)
        values[rows["agent"].to_numpy(np.int64)] = rows["value"]
        own[f"metric/{metric}"] = values
        label = label_of(str(metric))
        rising = rises(str(metric))
        columns.append({"name": f"metric/{metric}", "label": label, "metric": True, "rises": rising})
    for name, values in own.items():
        is_whole = np.asarray(values).dtype.kind in "iub"
        packer.add(f"agent/{name}", np.asarray(values) if is_whole else np.asarray(values, np.float64))
    return columns


def _add_series(held: Recording, packer: Packer) -> list[dict[str, Any]]:
    """Metrics of the replica along time."""
    listed: list[dict[str, Any]] = []
    rows = held.metrics[held.metrics["agent"].isna()]
    place = {metric: number for number, metric in enumerate(by_worth(rows["metric"].unique()))}
    groups: Any = rows.groupby(["metric", "model"], observed=True, sort=True)
    for (metric, model), group in sorted(groups, key=lambda entry: place[str(entry[0][0])]):
        if len(group) < 2:
            continue
        kept = np.unique(np.linspace(0, len(group) - 1, min(len(group), MOST_POINTS)).astype(int))
        packer.add(f"series/{len(listed)}/time", group["time"].to_numpy(float)[kept])
        packer.add(f"series/{len(listed)}/value", group["value"].to_numpy(float)[kept])
        name = str(metric)
        listed.append({"metric": name, "label": label_of(name), "model": str(model), "rises": rises(name)})
    return listed


def _add_own_metrics(held: Recording, packer: Packer) -> list[dict[str, Any]]:
    """Metrics of single agents at recorded times, (N, T) each."""
    listed: list[dict[str, Any]] = []
    rows = held.metrics[held.metrics["agent"].notna() & (held.metrics["model"] == "main")]
    for metric, group in rows.groupby("metric", observed=True, sort=True):
        wide = group.pivot_table(index="agent", columns="time", values="value", aggfunc="last")
        wide = wide.reindex(range(held.n))
        most = max(2, MOST_VALUES // max(held.n, 1))
        kept = np.unique(np.linspace(0, wide.shape[1] - 1, min(wide.shape[1], most)).astype(int))
        packer.add(f"own/{len(listed)}/time", wide.columns.to_numpy(float)[kept])
        packer.add(f"own/{len(listed)}/value", wide.to_numpy(np.float32)[:, kept])
        listed.append({"metric": str(metric), "label": label_of(str(metric)), "rises": rises(str(metric))})
    return listed


def findings(held: Recording, counts: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Answers in words: who was left behind and why, what dropouts cost, what collided, whose budget ended."""
    found = [left_behind(held, counts), _absent(held, counts), _failed(held), _exhausted(held, counts)]
    keys = ("title", "text", "tone", "agents")
    return [dict(zip(keys, finding, strict=True)) for finding in found]


#: Title, text, tone, and the agents that it is about.
_Finding = tuple[str, str, str, list[int]]


def left_behind(held: Recording, counts: dict[str, np.ndarray]) -> _Finding:
    """Agents that made few updates beside the others."""
    title, updates = "Who was left behind?", counts["updates"]
    middle = float(np.median(updates))
    # Where most agents made none, those who made none are left behind.
    behind = np.flatnonzero(updates < middle / 2 if middle or not updates.any() else updates == 0)
    what = "updates of the learner came from" if held.star else "updates were made by"
    if not behind.size:
        low, high = int(updates.min()), int(updates.max())
        return title, f"Nobody: {low:,} to {high:,} {what} each agent (median {middle:,.0f}).", "good", []
    worst = behind[np.argsort(updates[behind], kind="stable")]
    names = [f"{_name(held, i)} with {updates[i]:,} ({_why(held, counts, i)})" for i in worst[:3].tolist()]
    more = f"; and {worst.size - 3} more" if worst.size > 3 else ""
    few = f"less than half the median of {middle:,.0f} updates" if middle else "no update"
    who = f"{counted(worst.size, 'agent')} with {few}"
    return title, f"{who}: {'; '.join(names)}{more}.", "warn", worst.tolist()


def _name(held: Recording, agent: int) -> str:
    label = str(held.agents["label"].iloc[agent])
    return label if re.search("[^0-9.]", label) else f"agent {label}"


def _why(held: Recording, counts: dict[str, np.ndarray], agent: int) -> str:
    """The likeliest reason why an agent did little."""
    one = {name: float(values[agent]) for name, values in counts.items()}
    failed = one["lost"] + one["collided"] + one["unheard"]
    usual = float(np.median(counts["away"]))
    if not np.isnan(one["spent_at"]) and one["spent_at"] < 0.9 * held.end:
        return f"budget exhausted at time {one['spent_at']:.3g} of {held.end:.3g}"
    if one["away"] > 0.2 and one["away"] > 1.2 * usual:
        return f"offline {one['away']:.0%} of the time"
    if one["late"] > one["updates"]:
        return f"{one['late']:,.0f} answers came late"
    if one["sent"] and failed > 0.2 * one["sent"]:
        return f"{failed:,.0f} of its messages failed"
    if one["away"] > 0.2:
        return f"offline {one['away']:.0%} of the time, as others"
    return "it was rarely its turn"


def _absent(held: Recording, counts: dict[str, np.ndarray]) -> _Finding:
    title, events = "What did dropouts cost?", held.events
    missed = int((held.ends & (events["outcome"] == OFFLINE)).sum())
    unmade = int(((events["kind"] == DROP) & ~held.ends & (events["outcome"] == OFFLINE)).sum())
    if not held.absences[0].size and not missed and not unmade:
        return title, "Nothing: everybody was online all the time.", "good", []
    away = counts["away"]
    share = missed / max(int(held.ends.sum()), 1)
    most = int(away.argmax())
    found = f"{counted(missed, 'message')} ({share:.1%}) met" if missed else "No message met"
    text = (
        f"Agents were offline {away.mean():.0%} of the time on average; most of all {_name(held, most)} "
        f"({away[most]:.0%}). {found} somebody who was offline"
        f"{f', and {unmade:,} times work could not be finished' if unmade else ''}."
    )
    offline = np.flatnonzero((away > 0.2) & (away >= np.quantile(away, 0.8)))
    return title, text, "warn" if share > 0.05 or away.mean() > 0.1 else "plain", offline.tolist()


def _failed(held: Recording) -> _Finding:
    title, events = "Where did messages collide?", held.events
    dropped = held.ends & (events["kind"] == DROP)
    collided, lost = dropped & (events["outcome"] == COLLISION), dropped & (events["outcome"] == LOSS)
    ended = max(int(held.ends.sum()), 1)
    share = f"{counted(int(lost.sum()), 'message')} ({lost.sum() / ended:.1%})"
    other = f" {share} were lost by the channel." if lost.any() else ""
    if not collided.any():
        return title, f"Nowhere: no message collided.{other}", "warn" if lost.any() else "good", []
    receivers, times = np.unique(events["agent"][collided], return_counts=True)
    most = int(receivers[times.argmax()])
    where = "the learner" if most == LEARNER else _name(held, most)
    sent_by = np.bincount(np.maximum(events["peer"][collided], 0), events["peer"][collided] >= 0, held.n)
    counts, edges = np.histogram(events["time"][collided], 20, (0.0, held.end))
    worst = int(counts.argmax())
    text = (
        f"{counted(int(collided.sum()), 'message')} of {ended:,} ({collided.sum() / ended:.1%}) collided, most at "
        f"{where} ({times.max():,}); worst between times {edges[worst]:.3g} and {edges[worst + 1]:.3g}.{other}"
    )
    tone = "bad" if collided.sum() > 0.1 * ended else "warn"
    return title, text, tone, np.flatnonzero(sent_by >= max(np.quantile(sent_by, 0.9), 1))[:8].tolist()


def _exhausted(held: Recording, counts: dict[str, np.ndarray]) -> _Finding:
    title, spent_at = "Whose budget ran out, and when?", counts["spent_at"]
    if held.prepared is None:
        return title, f"Unknown: {held.lacking}.", "plain", []
    spent = np.flatnonzero(~np.isnan(spent_at))
    over = np.flatnonzero(held.ledger["over_budget"].to_numpy(bool, na_value=False))
    charged = (
        f"The ledger charges {over.size} of {held.n} agents more than their budgets. " if over.size else ""
    )
    if not spent.size:
        unlimited = (held.limits < 0).all()
        none = "nobody has a limit on releases" if unlimited else "every agent had releases left at the end"
        if charged:
            return title, f"{charged}Limits on releases stopped nobody: {none}.", "bad", over.tolist()
        return title, f"Nobody's: {none}.", "good", []
    order = spent[np.argsort(spent_at[spent], kind="stable")]
    names = [f"{_name(held, i)} at {spent_at[i]:.3g}" for i in order[:4].tolist()]
    more = f", … the last at {spent_at[order[-1]]:.3g}" if order.size > 4 else ""
    early = spent_at[order[0]] < 0.8 * held.end
    text = f"{charged}{order.size} of {held.n}: {', '.join(names)}{more} (the run ended at {held.end:.3g})."
    return title, text, "bad" if charged else "warn" if early else "plain", order.tolist()
