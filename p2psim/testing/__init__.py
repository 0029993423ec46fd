"""`check_part` tells whether a part of your own keeps the protocol of its kind.

It tests what every part must do; the checks of metrics, figures and algorithms are here, others beside. Metrics and
figures are classes that are never instantiated.
"""

import inspect
import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from p2psim.core.errors import P2PSimError
from p2psim.core.events import COMMIT
from p2psim.core.figures import Figure
from p2psim.core.options import Options
from p2psim.core.randomness import Streams
from p2psim.core.registry import kind_of, name_of, place_of
from p2psim.core.registry import parts as registered
from p2psim.learning.graph.algorithms import GossipAlgorithm
from p2psim.learning.graph.gossip import CompiledGossipReplay, GossipReplay
from p2psim.learning.graph.metrics import GraphMetric
from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask
from p2psim.learning.losses import Squared
from p2psim.learning.metrics import StarMetric
from p2psim.learning.reference import reference_gossip
from p2psim.learning.sgd.protocol import OfLearner, OnGraph
from p2psim.learning.steps import LearningAlgorithm
from p2psim.network.exchanges.gossip import Gossip
from p2psim.network.graph import from_edges
from p2psim.network.metrics import NetworkMetric
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.testing import models, network_parts, parts

#: Classes whose methods are to be written.
BASES = (StarMetric, GraphMetric, NetworkMetric, Figure)


def check_class(part: Any, method: str) -> Iterator[str]:
    """Yield what is wrong with the class of a metric or a figure."""
    if not isinstance(part, type):
        yield "its class is the part: register and check the class, not an instance"
        return
    if not str(getattr(part, "meaning", "")).strip():
        yield 'it does not say what it is: meaning = "..."'
    owner = next((base for base in part.__mro__ if method in vars(base)), None)
    if owner is None or owner in BASES:
        yield f"it lacks {method}"
    elif not isinstance(inspect.getattr_static(part, method), staticmethod):
        yield f"{method} must be a static method: put @staticmethod above it"


def check_algorithm(part: LearningAlgorithm) -> Iterator[str]:
    """Yield what is wrong with the methods of an algorithm, and with a run of it against the reference."""
    if isinstance(part, OfLearner | OnGraph):
        yield from models.check_training(part)
        return
    if not isinstance(part, GossipAlgorithm):
        if place_of(part) is not None:
            bases = "p2psim.GossipAlgorithm, GraphTraining or StarTraining"
            yield f"its base class must be {bases}: others cannot be simulated"
        return
    if part.updates != "hear":
        yield f"updates is {part.updates!r}; must be 'hear'"
    random = np.random.default_rng(0)
    for p in (1, 3):
        own, other = random.standard_normal((2, p))
        for name, call in (
            ("mix(own, received)", partial(part.mix, own, other)),
            ("step(at, gradient, updates)", partial(part.step, own, other, 3)),
        ):
            before = own.copy(), other.copy()
            first, second = call(), call()
            if np.shape(first) != (p,) or not np.isfinite(first).all():
                yield f"{name} of models of shape ({p},) gives {first!r}"
                return
            if not np.array_equal(first, second):
                yield f"{name} gives another model for the same arguments"
            if not (np.array_equal(own, before[0]) and np.array_equal(other, before[1])):
                yield f"{name} changes its arguments"
                return
    yield from _gossip(part)


def _gossip(part: GossipAlgorithm) -> Iterator[str]:
    """Replay a small run."""
    random, n, each, p = np.random.default_rng(1), 4, 5, 2
    ring = from_edges(n, np.arange(n), (np.arange(n) + 1) % n)
    X = random.standard_normal((n * each, p))
    ones, none = np.ones(n), np.zeros(n + 1, np.int64)
    problem = GraphProblem(
        Squared(), part.mu, X, X.sum(axis=1), np.arange(n + 1) * each, ones, ones, ones,
        ring.indptr, ring.indices, ring.weights, X[:0], X[:0, 0], none,
    )  # fmt: skip
    events = simulate_events(Network(ring, Gossip(), updates="hear"), Streams(0), commits=30).read()
    commits = events[events["kind"] == COMMIT]
    noise, start = random.standard_normal((commits.size, p)), random.standard_normal((n, p))
    order = np.lexsort((commits["release"], commits["agent"]))
    task = GraphTask(problem, GraphRule(clip=1.0), start)
    replay = GossipReplay(part, task)
    replay.feed(events, noise)
    *_, last = reference_gossip(part, task, events, noise[order])
    if not np.allclose(replay.theta, last, rtol=1e-9, atol=1e-12):
        yield "two replays of the same events differ: its methods are no functions of their arguments"
    if (form := part.for_kernel()) is not None:
        compiled = CompiledGossipReplay(part.kind, form, task)
        compiled.feed(events, noise)
        if not np.allclose(compiled.theta, last, rtol=1e-9, atol=1e-12):
            worst = np.abs(compiled.theta - last).max()
            yield f"models of the compiled form differ from those of mix and step by up to {worst:.2g}"


#: Checks of a kind: a function that yields what is wrong with a part.
CHECKS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "topology": parts.check_topology,
    "exchange": network_parts.check_exchange,
    "channel": network_parts.check_channel,
    "availability": network_parts.check_availability,
    "algorithm": check_algorithm,
    "model": models.check_model,
    "loss": parts.check_loss,
    "feature": parts.check_feature,
    "partition": parts.check_partition,
    "source": parts.check_source,
    "mechanism": parts.check_mechanism,
    "allocation": parts.check_allocation,
    "accountant": parts.check_accountant,
    "metric": partial(check_class, method="measure"),
    "figure": partial(check_class, method="draw"),
}


class PartError(P2PSimError, AssertionError):
    """A part does not keep the protocol of its kind; the message lists everything that was seen to be wrong."""


def check_part(part: Any) -> None:
    """Try a part, as scikit-learn's ``check_estimator`` tries an estimator.

    Parameters
    ----------
    part : Options or type
        A part with its keys, such as ``Caveman(cliques=3, members=4)``; the class of a metric, figure or accountant.
        It must be registered.

    Raises
    ------
    PartError
        If anything is wrong, with all that is.

    Notes
    -----
    A part that passes has a name and words for people, survives being written to a file and being sent to a worker
    process, and does on random inputs what the base class of its kind promises. Nothing is proved: the inputs are a
    few, of fixed seeds.
    """
    kind = kind_of(part)
    part = part() if kind == "accountant" and isinstance(part, type) else part
    wrong = list(_of_any_part(part, kind))
    if not wrong and kind in CHECKS:
        try:
            wrong += CHECKS[kind](part)
        except Exception as error:
            wrong.append(f"a check ended with {type(error).__name__}: {error}")
    if wrong:
        lines = "\n".join(f"- {what}" for what in wrong)
        raise PartError(f"{_class_of(part).__name__} is no {kind} that p2psim can use:\n{lines}")


def _class_of(part: Any) -> type:
    return part if isinstance(part, type) else type(part)


def _of_any_part(part: Any, kind: str) -> Iterator[str]:
    name = name_of(part)
    known = registered(kind).get(name)
    if known is None or _class_of(known) is not _class_of(part):
        yield f"it is not registered as the {kind} {name!r}: put @p2psim.register above the class"
    if not (_class_of(part).__doc__ or "").strip():
        yield "its class has no docstring; p2psim list shows the first paragraph"
    if not isinstance(part, Options):
        return
    for key, field in type(part).model_fields.items():
        if key != "kind" and not field.description:
            yield f"the key {key} has no description: Field(description=...)"
    if inspect.isabstract(type(part)):
        yield f"it lacks {', '.join(sorted(type(part).__abstractmethods__))}"
    try:
        again = type(part).model_validate_json(part.model_dump_json())
    except ValueError as error:
        yield f"it cannot be read again from what is written of it: {error}"
    else:
        if again != part:
            yield f"it changes when it is written and read again: {again!r}"
    try:
        sent = pickle.loads(pickle.dumps(part))  # its own bytes
    except Exception as error:
        yield f"it cannot be sent to a worker process: {error}; define it in a module, not in a function"
    else:
        if sent != part:
            yield f"it changes when it is sent to a worker process: {sent!r}"
