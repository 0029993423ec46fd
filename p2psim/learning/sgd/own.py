"""Replays events by the methods of a training algorithm, in Python; gradients come from the executor of its model."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.events import BEGIN, COMMIT, DELIVER, DROP, LEARNER, SEND, WAKE
from p2psim.learning.sgd.execute import executor_of
from p2psim.learning.sgd.problem import Answer, Gradient, Heard, Memory
from p2psim.learning.sgd.replay import ModelsReplay

if TYPE_CHECKING:
    from p2psim.learning.sgd.problem import Receivers, TrainingTask
    from p2psim.network.exchanges import Exchange
    from p2psim.network.graph import Graph

#: Queries that an owner has heard and not answered yet, at most: what it works on, what waits, what supersedes that.
_KEPT = 3


class MethodsReplay(ModelsReplay):
    """Base of such replays. Models are never written to once they are made, so that whoever hears one shares it.

    Parameters
    ----------
    algorithm : OfLearner or OnGraph
    task : TrainingTask
    exchange : Exchange
    receivers : callable
        Gives of events to how many each is sent, shape (events,).
    """

    def __init__(self, algorithm: Any, task: TrainingTask, exchange: Exchange, receivers: Receivers):
        super().__init__(task)
        self._algorithm, self._task, self._exchange, self._receivers = algorithm, task, exchange, receivers
        self._executor, self._start = executor_of(task, 1), self._model("start", task.start)
        self._memories: dict[int, Memory] = defaultdict(dict)
        self._mail: dict[int, tuple[Any, int]] = {}
        self._sent, self._row, self._noise = 0, 0, np.empty((0, task.start.size))

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelsReplay.feed`."""
        self._row, self._noise = 0, noise
        for event, receivers in zip(events, self._receivers(events).tolist(), strict=True):
            kind, cause = event["kind"], int(event["cause"])
            if kind == SEND:
                if event["version"] >= 0:
                    content = self._content(event)
                    self._sent += 1
                    if receivers:
                        self._mail[int(event["seq"])] = content, receivers
            elif kind in (DELIVER, DROP) and cause in self._mail:
                content, left = self._mail.pop(cause)
                if left > 1:
                    self._mail[cause] = content, left - 1
                if kind == DELIVER:
                    self._hear(event, content)
            else:
                self._act(event)

    @abstractmethod
    def _content(self, event: np.void) -> Any:
        """What a message with a model carries."""

    @abstractmethod
    def _hear(self, event: np.void, content: Any) -> None:
        """Note what a message has brought."""

    @abstractmethod
    def _act(self, event: np.void) -> None:
        """Follow an event that is of no such message."""

    @property
    def vectors_sent(self) -> int:
        """See `ModelsReplay.vectors_sent`."""
        return self._sent

    def _trained(self, agent: int, release: int, model: np.ndarray, t: int) -> np.ndarray:
        """What a release makes of a model."""
        with self._gradients(agent, release) as gradient:
            trained = self._algorithm.train(model, gradient, t, self._memories[agent])
        return self._model("train", trained)

    @contextmanager
    def _gradients(self, agent: int, release: int) -> Iterator[Gradient]:
        """Give the gradients of a release, as many as are accounted for."""
        algorithm, asked, row = self._algorithm, 0, self._row
        most = algorithm.queries

        def gradient(at: np.ndarray) -> np.ndarray:
            nonlocal asked
            if asked == most:
                message = (
                    f"train of {algorithm.kind} asks for more gradients than a release has, {most}: give more"
                )
                raise SimulationError(f"{message} local_steps")
            asked += 1
            query, place = release * most + asked - 1, row + asked - 1 if self._task.private else -1
            return self._executor.gradient(
                agent, query, place, self._model("train", at), np.asarray(self._noise)
            )

        yield gradient
        asked, self._row = most, row + most * self._task.private

    def _model(self, method: str, value: Any) -> np.ndarray:
        """What a method gave, as a model that nobody can write to."""
        kind, wanted = self._algorithm.kind, self._task.start.shape
        given = np.asanyarray(value)  # which keeps a mask
        if given.dtype.kind not in "fiub" or np.ma.is_masked(given):
            what = "masked entries" if np.ma.is_masked(given) else f"an array of {given.dtype}"
            raise SimulationError(f"{method} of {kind} must take and give models of real numbers, got {what}")
        model = np.array(given, np.float64)
        if model.shape != wanted:
            raise SimulationError(
                f"{method} of {kind} must take and give models of shape {wanted}, got {model.shape}"
            )
        model.flags.writeable = False
        return model.view()  # whose flag cannot be set


class StarMethods(MethodsReplay):
    """One replica of an `OfLearner`."""

    def __init__(self, algorithm: Any, task: TrainingTask, exchange: Exchange, receivers: Receivers):
        super().__init__(algorithm, task, exchange, receivers)
        self._learner, self._commits = self._start, 0
        # By owner and version: the delivery and the model.
        self._heard: dict[int, dict[int, tuple[int, np.ndarray]]] = defaultdict(dict)
        self._answers: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}

    @property
    def theta(self) -> np.ndarray:
        """See `ModelsReplay.theta`."""
        return self._learner[None]

    def _content(self, event: np.void) -> Any:
        owner, version = int(event["agent"]), int(event["version"])
        if owner == LEARNER:
            return self._learner
        _, start = self._heard[owner].pop(version)
        return self._trained(owner, int(event["release"]), start, version), start, version

    def _hear(self, event: np.void, content: Any) -> None:
        if event["agent"] == LEARNER:
            if not self._exchange.in_rounds:
                self._answers.clear()
            if not self._exchange.in_rounds or content[2] == self._commits:
                self._answers[int(event["peer"])] = content
        else:
            heard = self._heard[int(event["agent"])]
            heard[int(event["version"])] = int(event["seq"]), content
            if len(heard) > _KEPT:
                del heard[next(iter(heard))]

    def _act(self, event: np.void) -> None:
        owner = int(event["agent"])
        if event["kind"] == DROP and owner != LEARNER:  # a query that it will not answer
            heard = self._heard[owner].items()
            self._heard[owner] = {version: of for version, of in heard if of[0] != event["cause"]}
        if event["kind"] != COMMIT:
            return
        if self._answers:
            records, now = self._task.problem.records, self._commits
            answers = [
                Answer(owner, int(records[owner]), model, start, version, now - version)
                for owner, (model, start, version) in sorted(self._answers.items())
            ]
            new = self._algorithm.use(self._learner, answers, self._memories[LEARNER])
            self._learner = self._model("use", new)
        self._answers = {}
        self._commits += 1


class GraphMethods(MethodsReplay):
    """One replica of an `OnGraph`; ``links`` is the graph."""

    def __init__(
        self, algorithm: Any, task: TrainingTask, links: Graph, exchange: Exchange, receivers: Receivers
    ):
        super().__init__(algorithm, task, exchange, receivers)
        n = links.agents
        self._models = [self._start] * n
        self._links, self._weights = links, algorithm.weights(task, links)
        self._woke = [0.0] * n
        self._read: list[np.ndarray | None] = [None] * n
        # In pairs: the event that brought a model, and the model; of the last answer and of what came unasked.
        self._heard: list[dict[bool, tuple[int, Heard]]] = [{} for _ in range(n)]
        self._working: list[tuple[int, Heard | None]] = [(-1, None)] * n
        self._near: list[dict[int, tuple[np.ndarray, float]]] = [{} for _ in range(n)]

    @property
    def theta(self) -> np.ndarray:
        """See `ModelsReplay.theta`."""
        return np.array(self._models)

    def _content(self, event: np.void) -> Any:
        i, release = int(event["agent"]), int(event["release"])
        if release >= 0 and self._algorithm.order == "gradient-then-gossip" and self._exchange.in_rounds:
            self._models[i] = self._stepped(i, self._models[i], self._taken(i), release)
        is_answer = self._heard[i].get(False, (-1,))[0] == event["cause"]
        return self._models[i], float(event["time"]), is_answer

    def _hear(self, event: np.void, content: Any) -> None:
        i, peer = int(event["agent"]), int(event["peer"])
        if not self._exchange.sends_to_all:
            self._heard[i][content[2]] = int(event["seq"]), Heard(peer, 0.5, content[0])
        elif peer not in self._near[i] or content[1] >= self._near[i][peer][1]:
            self._near[i][peer] = content[:2]

    def _act(self, event: np.void) -> None:
        i, kind, order = int(event["agent"]), event["kind"], self._algorithm.order
        if kind == WAKE:
            if self._exchange.in_rounds:
                self._weights.advance(float(event["time"]))
            self._woke[i] = float(event["time"])
        elif kind == BEGIN:
            self._working[i] = int(event["seq"]), self._brought(i, event)
            if order == "gossip-then-gradient":
                self._models[i] = self._mixed(i, self._models[i], self._working[i][1], event)
            self._read[i] = self._models[i]
        elif kind == COMMIT:
            self._update(i, event, order)

    def _update(self, i: int, event: np.void, order: str) -> None:
        release, is_work = int(event["release"]), self._working[i][0] == event["cause"]
        received = self._working[i][1] if is_work else self._brought(i, event)
        # Who only averages when it is asked goes on with what it computes.
        is_read = (is_work or release >= 0 or self._exchange.sends_to_all) and self._read[i] is not None
        own = self._models[i]
        at = self._taken(i) if is_read else own
        if is_work:
            self._working[i] = -1, None
        if order == "gradient-then-gossip" and release >= 0:
            own = self._stepped(i, own, at, release)
        if not (order == "gossip-then-gradient" and is_read):  # else it has been mixed when the work began
            own = self._mixed(i, own, received, event)
            at = own if order == "gossip-then-gradient" else at
        if order != "gradient-then-gossip" and release >= 0:
            own = self._stepped(i, own, at, release)
        self._models[i] = own
        if self._exchange.in_rounds:
            self._near[i].clear()

    def _brought(self, i: int, event: np.void) -> Heard | None:
        """What the cause of an event has brought to an agent."""
        return next((heard for seq, heard in self._heard[i].values() if seq == event["cause"]), None)

    def _taken(self, i: int) -> np.ndarray:
        """The model with which an agent's work began, once; its model where none did."""
        read, self._read[i] = self._read[i], None
        return self._models[i] if read is None else read

    def _stepped(self, i: int, start: np.ndarray, at: np.ndarray, release: int) -> np.ndarray:
        """A model after the change that training makes of another."""
        trained = self._trained(i, release, at, release)
        return trained if start is at else self._model("train", start + (trained - at))

    def _mixed(self, i: int, own: np.ndarray, received: Heard | None, event: np.void) -> np.ndarray:
        """A model mixed with what the agent has heard."""
        heard = [] if received is None else [received]
        if self._exchange.sends_to_all:
            if not self._exchange.in_rounds:
                self._weights.advance(float(event["time"]))
            here = slice(*self._links.indptr[i : i + 2].tolist())
            peers, values = self._links.indices[here].tolist(), self._weights.values[here].tolist()
            weights = dict(zip(peers, values, strict=True))
            heard = [
                Heard(peer, weights[peer], model)
                for peer, (model, time) in sorted(self._near[i].items())
                if not self._exchange.in_rounds or time >= self._woke[i]
            ]
        return self._model("mix", self._algorithm.mix(own, heard, self._memories[i]))
