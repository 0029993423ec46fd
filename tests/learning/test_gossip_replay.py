"""An algorithm of one's own, replayed with compiled gradients, is what the reference makes of the same events."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from graph_cases import problem_of, random_links
from hypothesis import given, settings
from hypothesis import strategies as st
from own_parts import let_in

from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT
from p2psim.core.randomness import Streams
from p2psim.learning.batches import FixedBatch, PoissonBatch, Whole, sampling
from p2psim.learning.graph.averaging import AveragingReplay
from p2psim.learning.graph.gossip import CompiledGossipReplay, GossipReplay
from p2psim.learning.graph.problem import GraphRule, GraphTask
from p2psim.learning.losses import Logistic, Squared
from p2psim.learning.reference import reference_gossip
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Broadcast, Gossip
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events

with let_in("p2psim_example_parts"):
    from p2psim_example_parts.gossip_sgd import GossipSgd

LINKS = random_links(7, 0, extra=4)
CHANNELS = [Channel(), Channel(loss=0.3, latency=0.2)]


def gossip(mode="push", seed=0, channel=None, limits=None, goes_on=False, commits=80):
    network = Network(LINKS, Gossip(mode=mode), channel or Channel(), goes_on=goes_on, updates="hear")
    return simulate_events(network, Streams(seed), commits=commits, limits=limits).read()


def both_forms(algorithm, task):
    return (
        GossipReplay(algorithm, task),
        CompiledGossipReplay(algorithm.kind, algorithm.for_kernel(), task),
    )


@settings(max_examples=30, deadline=None)
@given(
    mode=st.sampled_from(["push", "pull", "push-pull"]),
    loss=st.sampled_from([Squared(), Logistic()]),
    batch=st.sampled_from([Whole(), PoissonBatch(rate=0.5), FixedBatch(size=2)]),
    clip=st.sampled_from([np.inf, 0.3]),
    order=st.sampled_from([1, 2]),
    grid=st.sampled_from([None, 0.05]),
    channel=st.sampled_from(CHANNELS),
    most=st.sampled_from([None, 3]),
    chunk=st.integers(1, 90),
    seed=st.integers(0, 999),
)
def test_both_forms_give_the_models_of_the_reference(
    mode, loss, batch, clip, order, grid, channel, most, chunk, seed
):
    """The methods in Python, and their compiled form, chunk by chunk; both count alike."""
    n = LINKS.agents
    limits = None if most is None else np.full(n, most)
    events = gossip(mode, seed, channel, limits, goes_on=most is not None)
    problem = problem_of(loss, LINKS, [3 + i % 3 for i in range(n)], 2, 1.0, seed=seed)
    commits = events[events["kind"] == COMMIT]
    commits = commits[commits["release"] >= 0]
    random = np.random.default_rng(seed)
    noise, start = (
        random.laplace(size=(commits.size, problem.dimension)),
        random.normal(size=(n, problem.dimension)),
    )
    drawn = sampling(batch, problem.records, np.array([seed, 7], np.uint64))
    algorithm, rule = GossipSgd(commits=80, learning_rate=0.2, decay=0.1), GraphRule(clip, order, grid=grid)
    task = GraphTask(problem, rule, start, sampling=drawn)
    replays, row = both_forms(algorithm, task), 0
    for first in range(0, events.size, chunk):
        piece = events[first : first + chunk]
        made = int(((piece["kind"] == COMMIT) & (piece["release"] >= 0)).sum())
        for replay in replays:
            replay.feed(piece, noise[row : row + made])
        row += made
    by_agent = np.lexsort((commits["release"], commits["agent"]))
    *_, last = reference_gossip(algorithm, task, events, noise[by_agent])
    for replay in replays:
        np.testing.assert_allclose(replay.theta, last, rtol=1e-9, atol=1e-9)
    plain, compiled = replays
    assert plain.counters[:2].tolist() == compiled.counters[:2].tolist()
    for counted, again in zip(plain.violations, compiled.violations, strict=True):
        np.testing.assert_allclose(counted, again, rtol=1e-9)


def test_without_steps_it_is_averaging():
    """At a step of length zero, on paper, gossip SGD is gossip averaging: the same models, bit by bit."""
    problem = problem_of(Squared(), LINKS, [4] * LINKS.agents, 2, 1.0, seed=3)
    events, start = (
        gossip("push-pull"),
        np.random.default_rng(0).normal(size=(LINKS.agents, problem.dimension)),
    )
    algorithm = GossipSgd(commits=80, learning_rate=1e-300)
    averaging = AveragingReplay(start)
    silent = events.copy()
    silent["release"] = -1
    averaging.feed(silent, np.empty((0, problem.dimension)))
    for replay in both_forms(algorithm, GraphTask(problem, GraphRule(), start)):
        replay.feed(events, np.zeros((int((events["kind"] == COMMIT).sum()), problem.dimension)))
        np.testing.assert_array_equal(replay.theta, averaging.theta)


def test_an_update_without_a_model_that_was_heard_is_refused():
    network = Network(LINKS, Broadcast())
    events = simulate_events(network, Streams(0), commits=5).read()
    problem = problem_of(Squared(), LINKS, [4] * LINKS.agents, 2, 1.0, seed=3)
    algorithm = GossipSgd(commits=5, learning_rate=0.1)
    for replay in both_forms(algorithm, GraphTask(problem, GraphRule(), np.zeros((LINKS.agents, 2)))):
        with pytest.raises(SimulationError, match="gossip-sgd updates where a model is heard: give gossip"):
            replay.feed(events, np.zeros((5, problem.dimension)))


_PROCESS = """
import sys
sys.path[:0] = {tests!r}
import numpy as np
import p2psim_example_parts.gossip_sgd as sgd
import test_gossip_replay as cases
from p2psim.core.compiled import first_class
from p2psim.learning.graph.gossip import _MIX, _STEP, CompiledGossipReplay, replay
problem = cases.problem_of(cases.Squared(), cases.LINKS, [4] * cases.LINKS.agents, 2, 1.0, seed=3)
task = cases.GraphTask(problem, cases.GraphRule(), np.ones((cases.LINKS.agents, 2)))
for rate in (0.1, 0.5):
    algorithm = sgd.GossipSgd(commits=80, learning_rate=rate)
    made = CompiledGossipReplay(algorithm.kind, algorithm.for_kernel(), task)
    made.feed(cases.gossip(), np.zeros((80, 2)))
    print(made.theta.tobytes().hex())
stats = replay.of_python.stats
misses = sum(stats.cache_misses.values()), sum(stats.cache_hits.values())
print(*misses, first_class(sgd._mix, _MIX).cache_hits, first_class(sgd._step, _STEP).cache_hits)
"""


def test_a_second_process_compiles_nothing(tmp_path):
    """One signature for all parameters; the kernel, and the functions that it calls, are kept."""
    folder, script = Path(__file__).parents[1], tmp_path / "script.py"
    script.write_text(_PROCESS.format(tests=[str(folder / "learning"), str(folder), str(folder / "plugins")]))
    said = [
        subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    *first, _ = said[0].splitlines()
    *second, counts = said[1].splitlines()
    assert first == second
    assert first[0] != first[1]
    assert counts == "0 1 1 1"
