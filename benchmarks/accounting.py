"""Time of accounting for many agents whose releases all differ: ``python benchmarks/accounting.py [--agents N]``.

Each agent made 100 Laplace releases, no two with the same loss. Wall time of one thread; the median of some rounds.
"""

import argparse
import time

import numpy as np

from p2psim.privacy.accounting import pld
from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import LAPLACE

RELEASES = 100
DELTA = 1e-6


def charges(agents: int) -> Charges:
    """Losses between .01 and .3, drawn at a fixed seed."""
    losses = np.random.default_rng(0).uniform(0.01, 0.3, agents * RELEASES)
    return Charges((LAPLACE,), np.zeros(losses.size, np.int8), losses, np.arange(agents + 1) * RELEASES)


def seconds(accountants: list[Accountant], agents: int, rounds: int) -> float:
    """Median of what they take together, each round on charges that nobody has looked at before."""
    taken = []
    for _ in range(rounds):
        own = charges(agents)
        start = time.perf_counter()
        for accountant in accountants:
            accountant.epsilon(own, DELTA)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    seconds([ACCOUNTANTS["kov"], ACCOUNTANTS["rdp"], ACCOUNTANTS["pld"]], 2, 1)
    rows = {
        "kov and rdp together": [ACCOUNTANTS["kov"], ACCOUNTANTS["rdp"]],
        "pld": [ACCOUNTANTS["pld"]],
        "pld, a finer grid": [pld.FINE],
    }
    for name, accountants in rows.items():
        taken = seconds(accountants, asked.agents, asked.rounds)
        print(f"{name}: {taken:.2f} s for {asked.agents:,} agents of {RELEASES} releases")


if __name__ == "__main__":
    main()
