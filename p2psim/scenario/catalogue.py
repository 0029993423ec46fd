"""The names that a scenario can use: kinds of parts, choices of keys and metrics, each with its meaning."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2psim.core.distributions import Distribution
from p2psim.core.figures import FIGURES
from p2psim.core.registry import parts as registered
from p2psim.scenario.faults import Schema, Schemas, kind_of
from p2psim.scenario.model import Scenario
from p2psim.scenario.rules import all_meanings


@dataclass(frozen=True)
class CatalogueEntry:
    """A name that a key takes.

    Attributes
    ----------
    key : str
        Dotted, positions in lists left out: ``data.features``.
    name : str
    meaning : str
    """

    key: str
    name: str
    meaning: str


@dataclass(frozen=True)
class SectionInfo:
    """A mapping of a scenario: a section, or one kind of a part.

    Attributes
    ----------
    key : str
        Where it stands.
    kind : str
        Empty for what has no kind.
    meaning : str
        The first paragraph of its docstring.
    schema : mapping
        Core schema of its model.
    """

    key: str
    kind: str
    meaning: str
    schema: Schema


def catalogue() -> list[CatalogueEntry]:
    """Return everything that can be named, in the order of the models, with meanings in plain text."""
    schemas = Schemas(Scenario)
    entries: list[CatalogueEntry] = []
    for part in parts(schemas):
        if part.kind:
            entries.append(CatalogueEntry(part.key, part.kind, part.meaning))
        for key, schema in schemas.fields(part.schema).items():
            if key != "kind":
                dotted = f"{part.key}.{key}".lstrip(".")
                known = CHOICES.get(dotted, {})
                description = part.schema["cls"].model_fields[key].description or ""
                for name, meaning in _choices(schemas, schema):
                    entries.append(CatalogueEntry(dotted, name, known.get(name, meaning or description)))
    entries += [CatalogueEntry("record.metrics", name, meaning) for name, meaning in all_meanings().items()]
    entries += [
        CatalogueEntry("figure", name, f"{entry.meaning}; needs {entry.needs}")
        for name, entry in FIGURES.items()
    ]
    plain = [CatalogueEntry(entry.key, entry.name, entry.meaning.replace("`", "")) for entry in entries]
    return list(dict.fromkeys(plain))


def matching(entries: Sequence[CatalogueEntry], word: str) -> list[CatalogueEntry]:
    """Entries that a word asks for: first those so named, then those of such a key, then those that speak of it.

    Parameters
    ----------
    entries : sequence of CatalogueEntry
    word : str
        Any part of a name or of a key; of a meaning, one or more whole words. Upper and lower case are alike; an
        underscore is a hyphen. Empty for all.
    """
    if not word:
        return list(entries)
    wanted = _folded(word)
    whole = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    tests: list[Callable[[CatalogueEntry], bool]] = [
        lambda entry: wanted in _folded(entry.name),
        lambda entry: wanted in _folded(entry.key),
        lambda entry: whole.search(_folded(entry.meaning)) is not None,
    ]
    return list(dict.fromkeys(entry for test in tests for entry in entries if test(entry)))


def _folded(text: str) -> str:
    return text.lower().replace("_", "-")


def parts(schemas: Schemas) -> list[SectionInfo]:
    """Return every mapping of the language: the scenario itself, its sections, and the parts inside them."""
    collected: list[SectionInfo] = []
    _collect(schemas, "", schemas.root, collected)
    return collected


def _collect(schemas: Schemas, key: str, schema: Schema, collected: list[SectionInfo]) -> None:
    for leaf in schemas.leaves(schema):
        if leaf["type"] != "model" or leaf["cls"] is Distribution:
            continue  # a distribution stands in many places, and is explained once
        text = leaf["cls"].__doc__ or ""
        meaning = " ".join(text.strip().split("\n\n")[0].split())
        collected.append(SectionInfo(key, kind_of(schemas, leaf), meaning, leaf))
        for name, field in schemas.fields(leaf).items():
            _collect(schemas, f"{key}.{name}".lstrip("."), field, collected)


def _choices(schemas: Schemas, schema: Schema) -> Iterator[tuple[str, str]]:
    """Names that a value can be, and what registered parts that are named say of themselves."""
    for leaf in schemas.leaves(schema):
        if leaf["type"] == "literal":
            kind = leaf.get("metadata", {}).get("part_kind")
            named: Any = registered(kind) if kind else {}
            yield from ((str(name), getattr(named.get(name), "meaning", "")) for name in leaf["expected"])


_REDUCTION = {
    "mean": "λ_i‖θ‖² is added to the mean of an agent's losses",
    "sum": "λ_i‖θ‖² is added to the sum of an agent's losses",
}

#: Meaning of each name, by dotted key. Others have the meaning of their key.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "independent": {
        "clocks": "when agents wake",
        "peers": "which neighbour an agent turns to",
        "latency": "how long messages take",
        "loss": "which messages are lost",
        "link-state": "when links are in their bad state, where losses come in bursts",
        "capture": "which transmissions survive those that begin during them",
        "backoff": "how long senders that heard another wait",
        "retransmit": "how long senders wait before they try again",
        "acknowledgement": "which acknowledgements are lost",
        "response": "how long owners take to answer a query",
        "service": "how long the learner is busy with an answer",
        "availability": "when agents are there",
        "rejoin": "whom an agent that comes back asks for a model",
        "topology": "random graphs",
        "data": "generated, shuffled and divided records",
        "noise": "noise of releases",
        "batches": "which records take part in a release",
        "start": "noise of models that agents start from",
        "baselines": "random numbers of the models that results are compared with",
    },
    "network.engine": {
        "auto": "array where the network is ideal, simpy elsewhere",
        "simpy": "SimPy processes: every network",
        "array": "compiled; where messages take no time, and the same events bit for bit",
    },
    "network.topology.metric": {
        "cosine": "by the angle between profiles",
        "euclidean": "by the distance between profiles",
    },
    "network.topology.symmetrise": {
        "or": "linked if one chooses the other",
        "and": "linked if both choose each other",
    },
    "network.topology.kernel": {"angular": "by the angle between targets"},
    "network.topology.format": {
        "edge-list": "a line for each link: two names and perhaps a weight",
        "graphml": "GraphML",
        "gml": "GML, the Graph Modelling Language",
        "adjacency-csv": "a matrix of weights; 0 is no link",
    },
    "network.topology.nodes": {
        "numbers": "nodes are named 0 … n − 1",
        "order": "agents are numbered as nodes first occur",
    },
    "network.exchange.busy": {
        "refuse": "who asks meanwhile is turned away",
        "queue": "who asks meanwhile waits for its turn",
    },
    "network.exchange.mode": {
        "push": "the one that wakes sends its model",
        "pull": "the one that wakes gets the other's model",
        "push-pull": "each gets the other's model",
        "edge": "a link wakes, and both its ends act; for gossip ADMM",
    },
    "network.exchange.served_clock": {
        "runs": "ticks of the owner that is being served count like all others",
        "stops": "the owner that is being served does not tick",
    },
    "network.exchange.partner": {
        "uniform": "every neighbour alike",
        "weight": "neighbours in proportion to the weights of their links",
    },
    "network.channel.collision": {
        "none": "messages do not disturb one another",
        "aloha": "who has something to send sends; what overlaps where it is heard is lost",
        "slotted": "ALOHA whose transmissions begin at whole slots",
        "carrier-sense": "who hears another waits a random time, then tries again",
    },
    "network.channel.while_sending": {
        "wait": "it waits its turn",
        "overlap": "it goes out at once; one sender's do not collide",
        "skip": "it is dropped",
    },
    "network.availability.messages": {
        "lost": "it is dropped",
        "held": "it waits until the agent is back",
    },
    "network.availability.rejoin": {
        "stale": "the one that it had",
        "reset": "the one that it started from",
        "fetch": "the learner's, or that of a neighbour drawn at random, of that moment",
    },
    "network.availability.depends.on": {
        "degree": "number of links",
        "records": "number of records",
        "label": "mean label",
    },
    "network.availability.spans_are": {
        "present": "the agent is there in its spans",
        "absent": "the agent is away in its spans",
    },
    "network.availability.by": {
        "degree": "number of links",
        "betweenness": "share of shortest paths that lead through the agent",
        "records": "number of records",
        "random": "nothing: all alike",
    },
    "network.availability.order": {
        "largest": "those with the most",
        "smallest": "those with the least",
    },
    "data.redraw": {
        "never": "one draw for all replicas",
        "replica": "a new draw in every replica",
    },
    "data.center": {"user": "each owner's labels less their mean"},
    "data.scale.x.norm": {"l1": "the sum of absolute values"},
    "data.scale.x.at": {"each-record": "every record is divided by its own norm; for classes"},
    "data.groups.by": {"records": "by how many records an owner holds"},
    "learning.algorithm.form": {
        "printed": "as the paper prints it, which minimises another objective",
        "corrected": "with the weight that minimises f",
    },
    "learning.algorithm.stale": {
        "blend": "with the learner's present model",
        "overwrite": "with the model that was sent with the query",
    },
    "learning.algorithm.smoothness": {
        "public": "from public bounds on x where there are any, otherwise from the records",
        "data": "from the records: then ε does not cover the steps",
    },
    "learning.algorithm.reweight": {
        "none": "every answer counts alike",
        "known": "by the inverse of how often owners answer, from clocks and availability: 1/(N·γ_i), or, in rounds, 1 "
        "over the chance to answer one in time, from availability, losses and the deadline",
        "estimated": "by the inverse of how often they have answered so far, of (count + 1)/(k + N) after k answers, "
        "or, in rounds, of (count + 1)/(k + 1) after k of them",
        "answered": "by the inverse of the share of the records whose owners have answered in this round",
    },
    "learning.algorithm.reweight_at": {
        "learner": "after the noise: free",
        "owner": "before the noise: the sensitivity is multiplied as well",
    },
    "learning.algorithm.start.reduction": _REDUCTION,
    "learning.regularizer.l2": {"inverse-size": "λ_i = 1/m_i, with m_i the agent's number of records"},
    "learning.baselines.reduction": _REDUCTION,
    "privacy.when_spent": {
        "silent": "the agent does nothing any more",
        "coast": "the agent averages its neighbours' models",
        "anchored": "the agent averages towards its own last model that touched its data",
    },
    "privacy.sensitivity.norm": {"l1": "the sum of absolute values", "l2": "the Euclidean norm"},
    "privacy.overlap.form": {
        "printed": "ε_i/κ: the loss of a record is at most the mean of its holders' promises",
        "corrected": "min_j ε_j/κ: at most the least of them",
    },
    "privacy.allocation.form": {
        "printed": "∝ C^{t/3}, as in the paper: late releases get less",
        "corrected": "∝ C^{(T−1−t)/3}: late releases get more",
    },
    "privacy.allocation.wakes": {
        "known": "shares of the releases that will happen; flagged clairvoyant",
        "expected": "shares of the releases that are expected; then the agent stops",
    },
    "privacy.allocation.exponent": {
        "auto": "by the mechanism: third for pure DP, quarter for Gaussian noise",
        "third": "where Σ ε is what is limited",
        "quarter": "where Σ ε² is what is limited, as under zCDP",
    },
    "replicas.until.statistic": {
        "mean": "by Student's t, which is exact for normal values",
        "median": "by order statistics, which holds for any law",
    },
    "record.by": {"group": "also the mean over each group of agents"},
}
