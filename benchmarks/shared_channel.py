"""Cost of a wake on a shared channel, as a ratio to a bare SimPy loop with one process an agent.

``python benchmarks/shared_channel.py [--rounds R]``. The bare loop does nothing but let agents wake; a wake of ours
also writes four records, sends a message on the common medium, and finds out who heard it. Both run in turn; the least
CPU time of each counts, since what else the machine does can only add to it.
"""

import argparse
import time

import numpy as np
import simpy

from p2psim.core.distributions import Distribution
from p2psim.core.events import DELIVER, DROP, WAKE
from p2psim.core.randomness import Streams
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Gossip, Poll
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import RandomRegular, Star, draw_links

AGENTS = 1_000
TIME = 40.0
#: One message in five finds another one on the air.
AIRTIME = 1e-4


def bare() -> float:
    """Seconds per wake of a process for each agent."""
    env, random, wakes = simpy.Environment(), np.random.default_rng(0), 0

    def agent():  # type: ignore[no-untyped-def]
        nonlocal wakes
        while True:
            yield env.timeout(random.exponential())
            wakes += 1

    for _ in range(AGENTS):
        env.process(agent())
    start = time.process_time()
    env.run(until=TIME)
    return (time.process_time() - start) / wakes


def ours(where: Graph, exchange: Exchange, channel: Channel) -> tuple[float, float, float]:
    """Seconds per wake, or per message that ended where nobody wakes; records per second; share heard."""
    stream = simulate_events(Network(where, exchange, channel), Streams(0), time=TIME, engine="array")
    records = wakes = ended = heard = 0
    seconds = 0.0
    chunks = iter(stream)
    while True:
        start = time.process_time()
        chunk = next(chunks, None)
        seconds += time.process_time() - start
        if chunk is None:
            break
        kinds = np.bincount(chunk["kind"], minlength=8)
        records += chunk.size
        wakes += int(kinds[WAKE])
        ended += int(kinds[DELIVER] + kinds[DROP])
        heard += int(kinds[DELIVER])
    return seconds / (wakes or ended), records / seconds, heard / ended


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    graph = draw_links(RandomRegular(degree=10), TopologyInputs(AGENTS))
    star = draw_links(Star(), TopologyInputs(AGENTS), learner=True)
    poll = Poll(response=Distribution(exponential=0.5))
    cases: dict[str, tuple[Graph, Exchange, Channel]] = {"gossip, ideal": (graph, Gossip(), Channel())}
    for kind in ("none", "aloha", "slotted", "carrier-sense"):
        channel = Channel(airtime=AIRTIME, collision=kind, shared=True)
        cases[f"gossip, {kind}"] = graph, Gossip(), channel
        cases[f"poll, {kind}"] = star, poll, channel
    print(f"{'case':24} {'µs':>7} {'ratio':>7} {'records/s':>10} {'heard':>6}")
    for name, case in cases.items():
        ours(*case)
        found = [(bare(), *ours(*case)) for _ in range(rounds)]
        least, cost = min(row[0] for row in found), min(row[1] for row in found)
        speed = max(row[2] for row in found)
        print(f"{name:24} {cost * 1e6:7.2f} {cost / least:7.2f} {speed:10,.0f} {found[0][3]:6.2f}")


if __name__ == "__main__":
    main()
