"""The table of agents: who they are, what they hold, their places in the graph; and how often each wakes or answers.

Frequencies in the long run are those of wakes; on a star, those at which owners answer. Rounds have chances instead:
that an owner answers a round, and that its answer is used.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from p2psim.core.distributions import Distribution, Quantity
from p2psim.core.errors import MeaningError
from p2psim.data.classes import SIGNS
from p2psim.data.prepare import Prepared
from p2psim.learning.graph.metrics import GRAPH_METRICS
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.section import Network
from p2psim.network.spectrum import spectral_facts
from p2psim.network.verify_messages import NEVER
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import named_metrics
from p2psim.theory.neighbours import neighbour_facts
from p2psim.theory.star import answer_frequencies


def names_of(prepared: Prepared) -> dict[str, np.ndarray]:
    """Names, groups and columns of the agents as arrays of a case, and names of classes other than ±1.

    No groups and no columns where there are none.
    """
    names = {"labels": prepared.labels} | ({"groups": prepared.groups} if prepared.groups else {})
    if prepared.class_names and prepared.class_names != SIGNS:
        names["classes"] = prepared.class_names
    arrays = {key: np.array(values, dtype=np.str_) for key, values in names.items()}
    if prepared.columns:
        arrays["column_names"] = np.array(list(prepared.columns), dtype=np.str_)
        arrays["columns"] = np.array(list(prepared.columns.values()))
    return arrays


def columns_of(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns that have one number per owner, of the arrays of a case; possibly none."""
    if "columns" not in arrays:
        return {}
    return dict(zip(arrays["column_names"].tolist(), arrays["columns"], strict=True))


def with_intercept(X: np.ndarray, intercept: bool) -> np.ndarray:
    """Records with a feature that is always one, or as they are."""
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) if intercept else X)


def refuse_tests(scenario: Scenario) -> None:
    """Raise a MeaningError if a metric needs records held out; called where there are none."""
    for key, name in named_metrics(scenario.record):
        if name in GRAPH_METRICS and GRAPH_METRICS[name].needs_tests:
            message = f"{name} needs records held out: test_points of the source, or data.test_fraction"
            raise MeaningError(key, message)


def held_out(prepared: Prepared, intercept: bool) -> dict[str, np.ndarray]:
    """Records that the agents keep for tests, as arrays of a case; possibly none."""
    X = with_intercept(prepared.test_X, intercept)
    return {"test_X": X, "test_y": prepared.test_y, "test_offsets": prepared.test_offsets}


def kinds_of(scenario: Scenario, groups: Sequence[str] | None, links: Graph) -> tuple[str, ...] | None:
    """What kind of agent each is, for means over those of a kind; None where none are recorded.

    Parameters
    ----------
    scenario : Scenario
        Its ``record.by`` says which kinds; Louvain's method and the sizes of blocks depend on the rest.
    groups : sequence of str, optional
        The agents' groups.
    links : Graph
    """
    by = scenario.record.by
    if by is None or by == "group":
        return None if by is None or groups is None else tuple(groups)
    if by == "degree":
        return tuple(f"degree {degree}" for degree in np.diff(links.indptr).tolist())
    if by == "block":
        sizes = enumerate(scenario.network.topology.block_sizes(links.agents), 1)
        return tuple(f"block {number}" for number, size in sizes for _ in range(size))
    import networkx as nx

    rows = np.repeat(np.arange(links.agents), np.diff(links.indptr))
    graph: nx.Graph[int] = nx.empty_graph(links.agents)
    graph.add_edges_from(zip(rows.tolist(), links.indices.tolist(), strict=True))
    kinds = [""] * links.agents
    communities = (
        nx.community.louvain_communities(graph, seed=scenario.seed % 2**32)
        if by == "louvain"
        else nx.community.greedy_modularity_communities(graph)
    )
    for number, cluster in enumerate(sorted(map(sorted, communities)), 1):
        for agent in cluster:
            kinds[agent] = f"cluster {number}"
    return tuple(kinds)


def members_of(arrays: Mapping[str, np.ndarray]) -> Members:
    """What the network knows of who holds the records of a case.

    Parameters
    ----------
    arrays : mapping
        Of the case: ``labels``, perhaps ``groups`` and ``columns``, ``offsets`` and ``y``.
    """
    offsets, y = arrays["offsets"], arrays["y"]
    records = np.diff(offsets)
    sums = np.diff(np.concatenate([[0.0], np.cumsum(y)])[offsets])
    labels = np.divide(sums, records, out=np.zeros(records.size), where=records > 0)
    groups = tuple(arrays["groups"].tolist()) if "groups" in arrays else None
    known = {"records": records, "label": labels}
    return Members(tuple(arrays["labels"].tolist()), groups, known, columns_of(arrays))


def star_centralities(owners: int, of_paths: bool) -> dict[str, np.ndarray]:
    """Those of a star's owners as of `graph_centralities`: the learner is on every shortest path."""
    degrees = {"degree": np.ones(owners, np.int32), "degree_centrality": np.full(owners, 1 / owners)}
    if not of_paths:
        return degrees
    # To each the learner and the other owners are as many others as there are owners.
    closeness = np.full(owners, owners / (1 + 2 * (owners - 1)))
    return degrees | {"closeness_centrality": closeness, "betweenness_centrality": np.zeros(owners)}


def graph_facts(links: Graph, metrics: Collection[str]) -> dict[str, float]:
    """Facts of a graph that metrics can name, by name; effective numbers of neighbours, which are slow, if named."""
    named = any(name.startswith("effective_neighbours") for name in metrics)
    return spectral_facts(links) | (neighbour_facts(links) if named else {})


def heard_by(scenario: Scenario, links: Graph) -> float:
    """How many agents a message is for, on average."""
    if not scenario.network.exchange.sends_to_all:
        return 1.0
    ends = links.indices.size if links.changes is None else scenario.network.topology.link_ends(links.agents)
    return float(ends / links.agents)


def events_of_commit(exchange: Exchange, owners: int) -> int:
    """Events per commit of a star, to estimate the size of a run."""
    if not exchange.gathers:
        return exchange.events_per_commit
    asked = exchange.asked(owners)
    return 2 + 3 * owners if asked == owners else 1 + 4 * asked


#: Beyond so many agents only degrees are given: betweenness takes time in n·links.
_MOST_CENTRALITIES = 2000


def graph_centralities(links: Graph, of_paths: bool) -> dict[str, np.ndarray]:
    """Degrees and normalised centralities (Freeman 1979), unweighted, those ``of_paths`` (closeness, betweenness) too.

    Those are NaN where there are too many agents, and of a graph that changes, whose degrees count all who can ever be
    neighbours.
    """
    degrees = np.diff(links.indptr)
    n = degrees.size
    table: dict[str, np.ndarray] = {
        "degree": degrees.astype(np.int32),
        "degree_centrality": degrees / max(n - 1, 1),
    }
    if not of_paths:
        return table
    if n > _MOST_CENTRALITIES or links.changes is not None:
        return table | {f"{name}_centrality": np.full(n, np.nan) for name in ("closeness", "betweenness")}
    return table | _centralities(links.indptr.tobytes(), links.indices.tobytes())


@lru_cache(maxsize=8)
def _centralities(indptr_bytes: bytes, indices_bytes: bytes) -> dict[str, np.ndarray]:
    import rustworkx as rx

    indptr, indices = np.frombuffer(indptr_bytes, np.int64), np.frombuffer(indices_bytes, np.int32)
    n = indptr.size - 1
    table: dict[str, np.ndarray] = {}
    graph: rx.PyGraph[None, None] = rx.PyGraph()
    graph.add_nodes_from([None] * n)
    owners = np.repeat(np.arange(n), np.diff(indptr))
    once = owners < indices
    graph.extend_from_edge_list(list(zip(owners[once].tolist(), indices[once].tolist(), strict=True)))
    # Beyond so many agents they would be found on several threads, which workers do not have.
    alone = n + 1
    for name in ("closeness_centrality", "betweenness_centrality"):
        values = getattr(rx, name)(graph, parallel_threshold=alone)
        table[name] = np.array([values[i] for i in range(n)])
    return table


def long_run_frequencies(network: Network) -> tuple[np.ndarray, bool]:
    """γ_i of each agent, shape (N,), adding up to one, and whether they are known beforehand.

    Where it cannot be said how often agents are there, they are taken to be there always.
    """
    shares = network.shares()
    known = not np.isnan(shares).any()
    return answer_frequencies(network.known_rates, shares if known else np.ones(shares.size)), known


def is_shared(network: Network) -> bool:
    """Whether a learner serves several owners at once: their answers are then to older models.

    An owner is served once at a time, so that owners do not answer in proportion to their rates.
    """
    exchange = network.exchange
    if exchange.places(network.links.agents) == 1:
        return False
    return exchange.answer_delay != 0 or network.compute is not None or not network.channel.takes_no_time


#: Delays that are drawn where their distribution function is not written down here.
_DRAWS = 200_000


@dataclass(frozen=True)
class ResponseProbabilities:
    """Chances in one round, independent of other owners and rounds.

    Attributes
    ----------
    heard : ndarray, shape (N,)
        That an owner is there, hears the query and answers.
    used : ndarray, shape (N,)
        That its answer, once given, arrives before the round closes.
    known : bool
        Whether it can be said how often owners are there; if not, they are taken to be there always.
    lacking : tuple of str
        What of the network is not in these numbers.
    draws : int
        In how many draws it was counted who answers in time; 0 where that is exact.
    """

    heard: np.ndarray
    used: np.ndarray
    known: bool
    lacking: tuple[str, ...]
    draws: int = 0


def answering(network: Network) -> ResponseProbabilities:
    """Chances of the owners of a network with rounds.

    Where owners are drawn for each round, being drawn is part of hearing the query. Losses of the query and of the
    answer are independent. An answer that comes after the deadline is not used.
    """
    channel, exchange, lacking = network.channel, network.exchange, []
    shares = network.shares()
    known = not np.isnan(shares).any()
    heard, used = shares if known else np.ones(shares.size), np.ones(shares.size)
    lost = channel.losses.shared_chance
    if lost is None:
        lacking.append("losses that differ or come in bursts: taken as none")
    else:
        heard, used = heard * (1 - lost), used * (1 - lost)
    if channel.collision != "none" or channel.airtime or channel.bandwidth is not None:
        lacking.append("collisions and airtime are not in it")
    if channel.resending != NEVER:
        lacking.append("what is sent again is not in it")
    if channel.effects:
        lacking.append("channel effects are not in it")
    draws = 0
    if not exchange.gathers:
        lacking.append(f"how {exchange.kind} gathers answers is not in it")
        return ResponseProbabilities(heard, used, known, tuple(lacking))
    heard = heard * (exchange.asked(shares.size) / shares.size)
    if exchange.round_deadline is not None:
        if network.compute is None:
            chance, draws = _within(exchange.answer_delay, exchange.round_deadline)
            used = used * chance
        else:
            lacking.append("the time to compute is not in what comes before a deadline")
        if channel.latency != 0:
            lacking.append("latency is not in what comes before a deadline")
    return ResponseProbabilities(heard, used, known, tuple(lacking), draws)


def _within(delay: Quantity, deadline: float) -> tuple[float, int]:
    """P(delay ≤ deadline), and the draws that it was counted in, 0 for none."""
    if not isinstance(delay, Distribution):
        return float(delay <= deadline), 0
    if delay.exponential is not None:
        return float(-np.expm1(-deadline / delay.exponential)), 0
    if delay.uniform is not None:
        low, high = delay.uniform
        share = (deadline - low) / (high - low) if high > low else float(low <= deadline)
        return float(np.clip(share, 0, 1)), 0
    return float((delay.sample(np.random.default_rng(0), _DRAWS) <= deadline).mean()), _DRAWS
