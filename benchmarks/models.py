"""Measure gradients of models beside the same arithmetic in one plain compiled loop, and beside bare PyTorch.

    python benchmarks/models.py [--smoke] [--rounds 3]

Compiled: steps of mini-batch SGD with batches of 16, by the kernel of p2psim and by a plain loop over records, layers,
outputs and inputs, both in float64. PyTorch: steps of one network by `TorchModel` and by a bare loop with
``torch.optim.SGD``; sums of many agents together and one by one; and FedAvg of 16 owners with five local steps,
replayed by p2psim and written by hand. Costs are CPU time with one thread. Without PyTorch its rows are left out.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from measuring import Row, child, spread, table

#: Measurements by name.
Found = dict[str, float]

RECORDS, BATCH, RATE = 500, 16, 0.1

#: Bound and order of the norm, without clipping and with.
CLIPS = (np.inf, 0), (1.0, 2)

#: Sizes of layers, and the activation.
NETWORKS = {
    "softmax 64–10": ((64, 10), "relu"),
    "MLP 64–32–10, max(0, z)": ((64, 32, 10), "relu"),
    "MLP 64–32–10, tanh": ((64, 32, 10), "tanh"),
    "MLP 784–100–10, max(0, z)": ((784, 100, 10), "relu"),
}

#: Sizes of PyTorch's networks.
MODULES = {"64–32–10": (64, 32, 10), "64–256–10": (64, 256, 10)}

#: What is wanted of rows whose names have these words in them.
WANTED = {
    "kernel / plain loop": "at most 2",
    "p2psim / bare PyTorch": "at most 1.3",
    "one by one / together": "above 1",
}


def records(features: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records of ten classes, and batches."""
    random = np.random.default_rng(0)
    X = random.standard_normal((RECORDS, features))
    rows = np.array([random.choice(RECORDS, BATCH, replace=False) for _ in range(steps)])
    return X, random.integers(0, 10, RECORDS).astype(float), rows


def cost(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Least CPU time of each function, called in turn; the first turn is left out."""
    least = [math.inf] * len(functions)
    for turn in range(repeats + 1):
        for place, function in enumerate(functions):
            began = time.process_time()
            function()
            if turn:
                least[place] = min(least[place], time.process_time() - began)
    return least


def compiled(steps: int, smoke: bool) -> Found:
    """Costs of p2psim's kernel, without and with clipping, beside the plain loop's."""
    from numba import njit

    from p2psim.learning.models import MLP, Softmax
    from p2psim.learning.models.kernels import add_gradient

    @njit
    def by_kernel(theta, X, y, batches, clip, order, kernel, total):  # type: ignore[no-untyped-def]
        for rows in batches:
            total[:] = 0.0
            add_gradient(theta, X, y, rows, rows.size, clip, order, kernel, total)
            for a in range(theta.size):
                theta[a] -= RATE / BATCH * total[a]

    @njit
    def plain(theta, X, y, batches, sizes, smooth, values, deltas, total):  # type: ignore[no-untyped-def]
        last = sizes.size - 1
        for rows in batches:
            total[:] = 0.0
            for r in rows:
                for i in range(sizes[0]):
                    values[0, i] = X[r, i]
                at = 0
                for layer in range(last):
                    n, outputs = sizes[layer], sizes[layer + 1]
                    for o in range(outputs):
                        z = theta[at + n * outputs + o]
                        for i in range(n):
                            z += theta[at + o * n + i] * values[layer, i]
                        if layer < last - 1:
                            z = math.tanh(z) if smooth else max(z, 0.0)
                        values[layer + 1, o] = z
                    at += (n + 1) * outputs
                top = values[last, : sizes[last]].max()
                norm = 0.0
                for c in range(sizes[last]):
                    deltas[last, c] = math.exp(values[last, c] - top)
                    norm += deltas[last, c]
                for c in range(sizes[last]):
                    deltas[last, c] /= norm
                deltas[last, int(y[r])] -= 1.0
                for layer in range(last - 1, -1, -1):
                    n, outputs = sizes[layer], sizes[layer + 1]
                    at -= (n + 1) * outputs
                    deltas[layer, :n] = 0.0
                    for o in range(outputs):
                        d = deltas[layer + 1, o]
                        for i in range(n):
                            total[at + o * n + i] += d * values[layer, i]
                        if layer > 0:
                            for i in range(n):
                                deltas[layer, i] += d * theta[at + o * n + i]
                        total[at + n * outputs + o] += d
                    if layer > 0:
                        for i in range(n):
                            a = values[layer, i]
                            deltas[layer, i] *= (1.0 - a * a) if smooth else (1.0 if a > 0.0 else 0.0)
            for a in range(theta.size):
                theta[a] -= RATE / BATCH * total[a]

    found: Found = {}
    for name, (sizes, activation) in list(NETWORKS.items())[: 2 if smoke else None]:
        model = MLP(layers=sizes[1:-1], activation=activation) if len(sizes) > 2 else Softmax()
        X, y, batches = records(sizes[0], steps)
        random = np.random.default_rng(1)
        start = model.start(sizes[0], 10, random)
        start += random.uniform(-0.05, 0.05, start.size)
        total, room = np.zeros(start.size), np.zeros((2, len(sizes), max(sizes)))
        ours, clipped = (
            (X, y, batches, clip, order, model.for_kernel(sizes[0], 10), total) for clip, order in CLIPS
        )
        plainly = X, y, batches, np.array(sizes), activation == "tanh", room[0], room[1], total
        one, other = start.copy(), start.copy()
        by_kernel(one, *ours)
        plain(other, *plainly)
        assert np.allclose(one, other, rtol=1e-9, atol=1e-12)
        kernel, clipping, loop = cost(
            lambda: by_kernel(start.copy(), *ours),  # noqa: B023
            lambda: by_kernel(start.copy(), *clipped),  # noqa: B023
            lambda: plain(start.copy(), *plainly),  # noqa: B023
            repeats=7,
        )
        found[f"{name}: kernel / plain loop"] = kernel / loop
        found[f"{name}: kernel with clipping / plain loop without"] = clipping / loop
        found[f"{name}: kernel, µs a step of {BATCH} records"] = kernel / steps * 1e6
    return found


def network(sizes: tuple[int, ...]) -> Any:
    """A model that is a PyTorch module of dense layers."""
    import torch

    from p2psim.learning.models.torch_model import TorchModel

    class Dense(TorchModel):
        """Dense layers."""

        kind: Literal["dense"] = "dense"

        def module(self, features: int, classes: int) -> torch.nn.Module:
            layers: list[torch.nn.Module] = []
            for n, outputs in pairwise(sizes):
                layers += [torch.nn.Linear(n, outputs), torch.nn.ReLU()]
            return torch.nn.Sequential(*layers[:-1])

    torch.set_num_threads(1)
    return Dense()


def one_network(name: str, steps: int) -> Found:
    """Costs of one network by p2psim beside bare PyTorch's; and of agents one by one beside together."""
    import torch

    sizes = MODULES[name]
    model = network(sizes)
    X, y, batches = records(sizes[0], steps)
    start = model.start(sizes[0], 10, np.random.default_rng(1))

    def ours() -> np.ndarray:
        theta = start.copy()
        for rows in batches:
            total = model.clipped_sums(theta[None], X, y, [rows])[0][0]
            total *= RATE / BATCH
            theta -= total
        return theta

    def bare() -> np.ndarray:
        module = model.module(sizes[0], 10).double()
        torch.nn.utils.vector_to_parameters(torch.from_numpy(start.copy()), module.parameters())
        optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
        x, labels, places = torch.from_numpy(X), torch.from_numpy(y).long(), torch.from_numpy(batches)
        for rows in places:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(module(x[rows]), labels[rows]).backward()
            optimiser.step()
        return torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy()

    assert np.allclose(ours(), bare(), rtol=1e-6, atol=1e-9)
    by_us, by_torch = cost(ours, bare, repeats=7)
    found = {f"{name}: p2psim / bare PyTorch": by_us / by_torch}
    for agents in (16, 32):
        thetas, rows = np.stack([start] * agents), list(batches[:agents])
        for words, clip in zip(("", ", clipped"), CLIPS, strict=True):
            together, alone = cost(
                lambda: model.clipped_sums(thetas, X, y, rows, *clip),  # noqa: B023
                lambda: [model.clipped_sums(t[None], X, y, [r], *clip) for t, r in zip(thetas, rows)],  # noqa: B023, B905
                repeats=7,
            )
            found[f"{name}: {agents} agents one by one / together{words}"] = alone / together
    return found


def federated(owners: int, rounds: int) -> Found:
    """Costs of FedAvg, five local steps a round: by p2psim's replay beside bare PyTorch by hand."""
    import torch

    import p2psim
    from p2psim.learning.sgd.algorithms import FedAvg
    from p2psim.learning.sgd.problem import SharedProblem, TrainingTask
    from p2psim.learning.sgd.replay import TrainingReplay
    from p2psim.simulation.algorithms.training import receivers_of

    sizes, local = MODULES["64–32–10"], 5
    model = network(sizes)
    X, y, _ = records(sizes[0], 1)
    X, y = X[: BATCH * owners], y[: BATCH * owners]
    start = model.start(sizes[0], 10, np.random.default_rng(1))
    nothing, offsets = np.zeros(owners + 1, np.int64), np.arange(owners + 1) * BATCH
    problem = SharedProblem(model, X, y, offsets, X[:0], y[:0], nothing, 10, 0.0, np.full(owners, 1 / owners))
    task = TrainingTask(problem, np.inf, 2, None, False, None, start)
    algorithm, exchange = FedAvg(step=RATE, local_steps=local, commits=rounds), p2psim.Round()
    graph = p2psim.Network.of_graph(p2psim.Star(agents=owners), exchange)
    events = p2psim.simulate_events(graph, seed=0, commits=rounds).read()

    def ours() -> np.ndarray:
        planner = algorithm.planner(task, graph.links, exchange)
        replay = TrainingReplay(planner, task, receivers_of(graph))
        replay.feed(events, np.empty((0, start.size)))
        return replay.theta[0]

    def bare() -> np.ndarray:
        module = model.module(sizes[0], 10).double()
        optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
        x = torch.from_numpy(X).view(owners, BATCH, -1)
        labels = torch.from_numpy(y).long().view(owners, BATCH)
        flat = torch.from_numpy(start.copy())
        for _ in range(rounds):
            total = torch.zeros_like(flat)
            for owner in range(owners):
                torch.nn.utils.vector_to_parameters(flat.clone(), module.parameters())
                for _ in range(local):
                    optimiser.zero_grad()
                    torch.nn.functional.cross_entropy(module(x[owner]), labels[owner]).backward()
                    optimiser.step()
                total += torch.nn.utils.parameters_to_vector(module.parameters()).detach()
            flat = total / owners
        return flat.numpy()

    assert np.allclose(ours(), bare(), rtol=1e-6, atol=1e-9)
    by_us, by_torch = cost(ours, bare, repeats=5)
    return {f"64–32–10, FedAvg of {owners} owners: p2psim / bare PyTorch": by_us / by_torch}


def modules(steps: int, smoke: bool) -> Found:
    """All that needs PyTorch."""
    found = federated(16, 2 if smoke else 10)
    for name in list(MODULES)[: 1 if smoke else None]:
        found |= one_network(name, max(steps, 32))
    return found


WORKERS = {"compiled": compiled, "modules": modules}


def measured(rounds: int, smoke: bool) -> tuple[Mapping[str, list[float]], list[Row]]:
    """What is measured, with few steps if it is only to be seen that it runs."""
    found: dict[str, list[float]] = defaultdict(list)
    for worker in WORKERS if find_spec("torch") else ["compiled"]:
        for _ in range(rounds):
            for name, value in child("models.py", "--worker", worker, *["--smoke"] * smoke).items():
                found[name].append(value)
    wanted = {name: next((text for words, text in WANTED.items() if words in name), "") for name in found}
    return found, [(name, spread(values), wanted[name]) for name, values in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", choices=WORKERS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        print(json.dumps(WORKERS[asked.worker](3 if asked.smoke else 100, asked.smoke)))
    else:
        print(table(measured(1 if asked.smoke else asked.rounds, asked.smoke)[1]))


if __name__ == "__main__":
    main()
