"""Training algorithms of your own, by their methods in Python: beside the built-in ones, and beside the reference."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from own_parts import let_in
from training_cases import agree, play, problem, task

import p2psim
from p2psim.learning.batches import PoissonBatch
from p2psim.learning.sgd.algorithms import DecentralisedSgd, FedAsync, FedAvg

RING, STAR = p2psim.Ring(agents=6), p2psim.Star(agents=6)
HARD = {
    "channel": p2psim.Channel(latency={"uniform": (0.0, 1.0)}, loss=0.2),
    "availability": p2psim.Renewal(up=3.0, down=1.0),
}
COMPUTE = p2psim.Compute(time={"exponential": 0.4})


class _Blend(p2psim.StarTraining):
    """The learner blends each answer with its model."""

    kind: Literal["blend"] = "blend"

    star_exchanges: ClassVar[tuple[str, ...]] = ("request", "poll")

    def train(self, model: np.ndarray, gradient: Any, t: int, memory: dict[str, Any]) -> np.ndarray:
        return model - 0.2 * gradient(model)

    def use(self, model: np.ndarray, answers: Sequence[p2psim.Answer], memory: dict[str, Any]) -> np.ndarray:
        (answer,) = answers
        share = 0.6 / (1 + answer.age)
        return (1 - share) * model + share * answer.model


def _descent(first: str) -> type[p2psim.GraphTraining]:
    class Descent(p2psim.GraphTraining):
        """Decentralised SGD."""

        kind: Literal["descent"] = "descent"
        order: ClassVar[Any] = first

        def train(self, model: np.ndarray, gradient: Any, t: int, memory: dict[str, Any]) -> np.ndarray:
            memory["v"] = 0.5 * memory.get("v", 0) + gradient(model)
            return model - 0.2 / (1 + 0.3 * t) * memory["v"]

    return Descent


@pytest.mark.parametrize("compute", [None, COMPUTE], ids=["at once", "computed"])
@pytest.mark.parametrize("first", ["gossip-then-gradient", "gradient-then-gossip", "together"])
@pytest.mark.parametrize(
    "exchange",
    [p2psim.Gossip(mode="push"), p2psim.Gossip(mode="push-pull"), p2psim.Broadcast(), p2psim.Synchronous()],
    ids=lambda exchange: getattr(exchange, "mode", exchange.kind),
)
def test_descent_is_decentralised_sgd(exchange, first, compute):
    """Also where models are late, lost, or taken while an agent computes; by an executor that is compiled."""
    of = task(problem("softmax"), PoissonBatch(rate=0.4), private=True, clip=0.5)
    slow = {"kind": "inverse", "first": 0.2, "decay": 0.3}
    known = DecentralisedSgd(step=slow, order=first, momentum=0.5, commits=1)
    ours = play(_descent(first)(commits=1), exchange, RING, of, compute=compute, **HARD)
    theirs = play(known, exchange, RING, of, compute=compute, **HARD)
    np.testing.assert_array_equal(ours.events, theirs.events)
    np.testing.assert_allclose(ours.models, theirs.models, rtol=1e-12, atol=1e-13)
    agree(ours)


@pytest.mark.parametrize("compute", [None, COMPUTE], ids=["at once", "computed"])
@pytest.mark.parametrize("exchange", [p2psim.Poll(interval=0.1), p2psim.Request()], ids=["poll", "request"])
def test_blend_is_fedasync(exchange, compute):
    of = task(problem("logistic"), PoissonBatch(rate=0.4), private=True, clip=0.5)
    known = FedAsync(step=0.2, alpha=0.6, staleness={"kind": "inverse", "rate": 1.0}, commits=1)
    ours, theirs = (
        play(algorithm, exchange, STAR, of, compute=compute, **HARD)
        for algorithm in (_Blend(commits=1), known)
    )
    np.testing.assert_allclose(ours.models, theirs.models, rtol=1e-12, atol=1e-13)
    agree(ours)


@pytest.mark.parametrize("engine", ["auto", "simpy"])
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_server_momentum_is_fedavg_with_it(plain, engine):
    """The example of a package: with the proximal term of FedProx, under both engines and executors."""
    with let_in("p2psim_example_parts"):
        from p2psim_example_parts.server_momentum import ServerMomentum

        of = task(problem("softmax", weights="records"), PoissonBatch(rate=0.5), private=True, clip=0.5)
        keys: dict[str, Any] = {"step": 0.1, "local_steps": 3, "proximal": 0.2, "commits": 1}
        exchange = p2psim.Round(participants=4)
        how: dict[str, Any] = {"commits": 12, "plain": plain, "engine": engine, **HARD}
        ours = play(ServerMomentum(momentum=0.5, **keys), exchange, STAR, of, **how)
        theirs = play(FedAvg(server_momentum=0.5, **keys), exchange, STAR, of, **how)
    np.testing.assert_allclose(ours.models, theirs.models, rtol=1e-12, atol=1e-13)
    agree(ours)
