"""From a graph and an exchange pattern to a stream of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, get_args

import numpy as np

from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import event_table, join
from p2psim.core.randomness import Streams
from p2psim.network.section import Engine, Network, RunSetup, scope_message, uncompiled_parts

if TYPE_CHECKING:
    import pandas as pd

#: Events in a chunk, by default: 1.5 MB, which a processor's cache can hold.
CHUNK = 1 << 15

ENGINES: tuple[str, ...] = get_args(Engine)


class Run(Protocol):
    """What an engine offers of one run."""

    @property
    def ended(self) -> str:
        """How the run ended; empty while it goes on."""

    def run(self) -> Iterator[np.ndarray]:
        """Yield chunks of events."""


class EventStream:
    """Chunks of events of one run, in order; read it once.

    Attributes
    ----------
    engine : str
        The engine that makes it: ``simpy`` or ``array``.
    """

    def __init__(self, run: Run, engine: str):
        self._run = run
        self.engine = engine

    def __iter__(self) -> Iterator[np.ndarray]:
        return self._run.run()

    @property
    def ended(self) -> str:
        """How the run ended: ``commits``, ``time`` or ``exhausted``; empty while it goes on."""
        return self._run.ended

    def read(self) -> np.ndarray:
        """All events in one array."""
        return join(list(self))

    def to_frame(self) -> pd.DataFrame:
        """All events in a table with one row per event, as ``events.parquet`` holds them."""
        frame: pd.DataFrame = event_table(self.read()).to_pandas()
        return frame


def simulate_events(
    network: Network,
    streams: Streams | None = None,
    *,
    seed: int = 0,
    replica: int = 0,
    commits: int | None = None,
    time: float | None = None,
    limits: np.ndarray | None = None,
    engine: str = "auto",
    chunk: int = CHUNK,
) -> EventStream:
    """Make the events of one replica.

    Parameters
    ----------
    network : Network
    streams : Streams, optional
        Random streams of the replica; those of a seed and a replica when left out.
    seed, replica : int
        Every random number follows from them.
    commits : int, optional
        End with this many commits.
    time : float, optional
        End after what happens at this time.
    limits : ndarray of int, shape (n,), optional
        The most releases that each agent may make; at least one each, unless agents go on without.
    engine : {"auto", "simpy", "array"}
    chunk : int
        Events in a chunk.

    Returns
    -------
    EventStream

    Raises
    ------
    InputError
        If the run has no end, the engine is unknown, the rates or limits are wrong, the exchange does not fit
        the graph, or the array engine is asked for what it cannot do.

    Examples
    --------
    >>> import p2psim
    >>> network = p2psim.Network.of_graph(p2psim.Ring(agents=5), p2psim.Gossip(), p2psim.Channel(loss=0.5))
    >>> events = p2psim.simulate_events(network, seed=1, commits=100).to_frame()
    >>> int((events["kind"] == "commit").sum())
    100
    """
    streams = Streams(seed, replica) if streams is None else streams
    return event_source(network, commits, time, limits, engine, chunk)(streams)


def event_source(
    network: Network,
    commits: int | None,
    time: float | None,
    limits: np.ndarray | None,
    engine: str = "auto",
    chunk: int = CHUNK,
) -> Callable[[Streams], EventStream]:
    """Check a network and the ends of its runs, once for all replicas; parameters as of `simulate_events`.

    Returns
    -------
    callable
        Opens the stream of events of a replica, by its random streams.
    """
    n, pattern = network.links.agents, network.exchange
    if commits is None and time is None:
        raise InputError("a run needs an end: a number of commits or a time")
    if (commits is not None and commits < 1) or (time is not None and not time > 0) or chunk < 1:
        raise InputError(f"commits, time and chunk must be positive, got {commits}, {time} and {chunk}")
    if commits is None and time == np.inf:
        raise InputError("a run needs an end: a number of commits or a finite time")
    if engine not in ENGINES:
        raise MeaningError("network.engine", f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
    rates = network.known_rates
    if rates.shape != (n,) or not (np.isfinite(rates) & (rates > 0)).all():
        raise MeaningError("network.clock.rate", f"must be {n} positive finite numbers, got {rates}")
    least = 0 if network.goes_on else 1
    if limits is not None and (
        limits.shape != (n,) or limits.dtype.kind not in "iu" or (limits < least).any()
    ):
        raise InputError(f"limits must be {n} whole numbers of at least {least}, got {limits}")
    if network.goes_on and pattern.needs_learner:
        raise MeaningError("privacy.when_spent", "an owner sends nothing to the learner without its data")
    if pattern.needs_learner != network.links.star:
        raise MeaningError(
            "network.exchange",
            "this pattern needs a star with a central learner"
            if pattern.needs_learner
            else "this pattern needs a graph without a central learner",
        )
    if pattern.blocks and network.answerer_releases:
        raise MeaningError(
            "network.exchange.blocking", "needs an algorithm in which the agent that answers makes no release"
        )
    if network.updates == "hear" and not pattern.updates_on_hearing:
        raise MeaningError(
            "network.exchange", "an algorithm that updates models when they are heard needs exchange: gossip"
        )
    if (
        time is None
        and pattern.needs_delivery(network.updates)
        and network.channel.losses.loses_all(network.links)
    ):
        raise MeaningError(
            "network.channel.loss", "every message is lost, so that no commit would ever be made"
        )
    network.check_compute()
    uncompiled = uncompiled_parts(pattern, network.channel, network.availability)
    if engine == "array" and uncompiled:
        raise MeaningError("network.engine", scope_message(uncompiled))
    begin: Callable[[RunSetup], Run]
    if not uncompiled and engine != "simpy":
        from p2psim.network.compiled_engine.engine import kind_of_run

        begin, made_by = kind_of_run(network), "array"
    else:
        from p2psim.network.simpy_engine.engine import SimPyRun

        begin, made_by = SimPyRun, "simpy"
    return lambda streams: EventStream(
        begin(RunSetup(network, rates, streams, limits, commits, time, chunk)), made_by
    )
