"""What the names mean that a key takes and that are no parts of their own."""

from collections.abc import Mapping

#: Meaning of each name, by dotted key. Others have the meaning of their key.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "independent": {
        "clocks": "when agents wake",
        "peers": "which neighbour an agent turns to",
        "latency": "how long messages take",
        "loss": "which messages are lost",
        "response": "how long owners take to answer a query",
        "service": "how long the learner is busy with an answer",
        "availability": "when agents are there",
        "topology": "random graphs",
        "data": "generated, shuffled and divided records",
        "noise": "noise of releases",
    },
    "network.engine": {
        "auto": "array where the network is ideal, simpy elsewhere",
        "simpy": "SimPy processes: every network",
        "array": "compiled; ideal networks only, and the same events bit for bit",
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
    "network.exchange.mode": {"push": "the one that wakes sends its model"},
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
    "privacy.when_spent": {"silent": "it does nothing"},
    "privacy.accountant": {"basic": "ε of several releases add up"},
    "privacy.sensitivity.norm": {"l1": "the sum of absolute values"},
}
