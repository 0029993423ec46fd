"""PyTorch modules as models: against PyTorch itself, the compiled network, and gradients one by one.

They are skipped without PyTorch, unless P2PSIM_TEST_TORCH=required.
"""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
from plugin_cases import PLUGINS, started
from pydantic import Field

if os.environ.get("P2PSIM_TEST_TORCH") == "required":
    import torch
else:
    torch = pytest.importorskip(
        "torch", reason='tests of PyTorch modules need PyTorch: pip install "p2psim[torch]"'
    )

import p2psim as package
from p2psim.core import registry
from p2psim.learning.models import MLP, Softmax
from p2psim.learning.models.kernels import add_gradient
from p2psim.learning.models.torch_model import TorchModel
from p2psim.testing import PartError, check_part

FEATURES, CLASSES = 6, 4
ACTIVATIONS = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}


class Perceptron(TorchModel):
    """Dense layers."""

    kind: Literal["perceptron"] = "perceptron"
    layers: list[int] = Field([5, 3], description="outputs of hidden layers")
    activation: Literal["relu", "tanh"] = Field("tanh", description="after them")

    def module(self, features: int, classes: int) -> torch.nn.Module:
        layers, inputs = [], features
        for outputs in self.layers:
            layers += [torch.nn.Linear(inputs, outputs), ACTIVATIONS[self.activation]()]
            inputs = outputs
        return torch.nn.Sequential(*layers, torch.nn.Linear(inputs, classes))


class Score(TorchModel):
    """One number, for signs or numbers."""

    kind: Literal["score"] = "score"
    signs: bool = Field(False, description="whether labels are signs")

    labels = property(lambda self: "signs" if self.signs else "numbers")  # type: ignore[assignment]

    def module(self, features: int, classes: int) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(features, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))


class Odd(TorchModel):
    """Dropout, batch normalisation, a parameter used twice, and a layer that is not trained."""

    kind: Literal["odd"] = "odd"

    def module(self, features: int, classes: int) -> torch.nn.Module:
        first = torch.nn.Linear(features, features)
        frozen = torch.nn.Linear(features, features).requires_grad_(False)
        return torch.nn.Sequential(
            first, torch.nn.Tanh(), torch.nn.Dropout(0.5), first, torch.nn.BatchNorm1d(features), frozen,
            torch.nn.Linear(features, classes),
        )  # fmt: skip


class Untrained(TorchModel):
    """Nothing to train."""

    kind: Literal["untrained"] = "untrained"

    def module(self, features: int, classes: int) -> torch.nn.Module:
        return torch.nn.Flatten()


class AcrossRecords(TorchModel):
    """Subtracts the mean of the batch."""

    kind: Literal["across"] = "across"

    class Centred(torch.nn.Module):
        def __init__(self, features: int, classes: int):
            super().__init__()
            self.dense = torch.nn.Linear(features, classes)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.dense(x - x.mean(dim=0))

    centred: ClassVar[type] = Centred

    def module(self, features: int, classes: int) -> torch.nn.Module:
        return self.centred(features, classes)


def records(number: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal((number, FEATURES)), random.integers(0, CLASSES, number).astype(float)


@pytest.mark.parametrize(
    ("layers", "activation", "steps"),
    [
        ([], "relu", 50),
        ([5], "relu", 50),
        ([5], "tanh", 50),
        ([7, 5], "relu", 50),
        ([7, 5], "tanh", 200),
    ],
)
def test_steps_agree_with_pytorch_and_with_the_compiled_network(
    layers: list[int], activation: str, steps: int
) -> None:
    """To 1e-6 relative, in float64; mini-batches of 8."""
    X, y = records(200)
    random = np.random.default_rng(1)
    model = Perceptron(layers=layers, activation=activation)
    start = model.start(FEATURES, CLASSES, random)
    batches = [random.choice(200, 8, replace=False) for _ in range(steps)]

    module = model.module(FEATURES, CLASSES).double()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(start.copy()), module.parameters())
    optimiser = torch.optim.SGD(module.parameters(), lr=0.5)
    for rows in batches:
        optimiser.zero_grad()
        outputs = module(torch.from_numpy(X[rows]))
        torch.nn.functional.cross_entropy(outputs, torch.from_numpy(y[rows]).long()).backward()
        optimiser.step()
    expected = torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
    assert np.abs(expected - start).max() > 0.1

    by_functions, by_kernel = start.copy(), start.copy()
    if layers:
        compiled = MLP(layers=layers, activation=activation).for_kernel(FEATURES, CLASSES)
    else:
        compiled = Softmax().for_kernel(FEATURES, CLASSES)
    for rows in batches:
        by_functions -= 0.5 * model.clipped_sums(by_functions[None], X, y, [rows])[0][0] / 8
        total = np.zeros(start.size)
        add_gradient(by_kernel, X, y, rows, 8, np.inf, 0, compiled, total)
        by_kernel -= 0.5 * total / 8
    np.testing.assert_allclose(by_functions, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_kernel, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("layers", [[5], [7, 5]])
def test_losses_and_outputs_are_those_of_the_network_in_numpy(layers: list[int]) -> None:
    X, y = records()
    for activation in ACTIVATIONS:
        model, plain = (
            Perceptron(layers=layers, activation=activation),
            MLP(layers=layers, activation=activation),
        )
        theta = model.start(FEATURES, CLASSES, np.random.default_rng(0))
        for ours, other in (
            (model.losses(theta, X, y), plain.losses(theta, X, y)),
            (model.gradients(theta, X, y), plain.gradients(theta, X, y)),
            (model.outputs(theta, X), plain.outputs(theta, X)),
        ):
            np.testing.assert_allclose(ours, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_clipped_one_by_one(order: int) -> None:
    """Of batches of several sizes, more than are computed at once, one of them empty, one cut into pieces."""
    model = Perceptron(layers=[60])
    X, y = records(2_000, seed=3)
    random = np.random.default_rng(2)
    thetas = np.stack([model.start(FEATURES, CLASSES, random) for _ in range(200)])
    sizes = random.integers(1, 20, 200)
    sizes[7], sizes[9] = 0, 1_900
    batches = [random.choice(2_000, size, replace=False) for size in sizes]
    clip = float(np.median(np.linalg.norm(model.gradients(thetas[0], X, y), order, axis=1)))
    sums, longest = model.clipped_sums(thetas, X, y, batches, clip, order)
    shortened = 0
    for theta, rows, total, largest in zip(thetas, batches, sums, longest, strict=True):
        expected, norms = np.zeros(theta.size), [0.0]
        for gradient in model.gradients(theta, X[rows], y[rows]) if rows.size else ():
            norms.append(abs(gradient).sum() if order == 1 else float((gradient @ gradient) ** 0.5))
            shortened += norms[-1] > clip
            expected += gradient * min(1.0, clip / norms[-1])
        np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-10)
        assert largest == pytest.approx(max(norms), rel=1e-10)
    assert 100 < shortened < sizes.sum() - 100  # some of both


@pytest.mark.parametrize("count", [1, 3, 8, 40])
@pytest.mark.parametrize("width", [4, 4000])
def test_sums_without_clipping_are_those_of_the_gradients(count: int, width: int) -> None:
    """One by one and together, as their number and size ask for."""
    model = Perceptron(layers=[width], activation="relu")
    X, y = records()
    random = np.random.default_rng(4)
    thetas = np.stack([model.start(FEATURES, CLASSES, random) for _ in range(count)])
    batches = [random.choice(40, random.integers(0, 9), replace=False) for _ in range(count)]
    sums, longest = model.clipped_sums(thetas, X, y, batches)
    assert not longest.any()
    for theta, rows, total in zip(thetas, batches, sums, strict=True):
        expected = model.gradients(theta, X[rows], y[rows]).sum(axis=0) if rows.size else 0 * theta
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "part",
    [
        Perceptron(),
        Perceptron(layers=[4], activation="relu"),
        Score(),
        Score(signs=True),
        Odd(),
    ],
    ids=repr,
)
def test_modules_pass(part: TorchModel) -> None:
    registry.register(type(part))
    try:
        check_part(part)
    finally:
        registry.forget("model", part.kind)


@pytest.mark.parametrize(
    ("part", "said"),
    [(AcrossRecords, "depend on the other records"), (Untrained, "no parameters that require")],
)
def test_what_is_wrong_is_said(part: type[TorchModel], said: str) -> None:
    registry.register(part)
    try:
        with pytest.raises(PartError, match=said):
            check_part(part())
    finally:
        registry.forget("model", registry.name_of(part))


def test_parameters_that_are_not_trained_stay_as_they_were_made() -> None:
    X, _ = records()
    model = Odd()
    theta = model.start(FEATURES, CLASSES, np.random.default_rng(0))
    assert theta.size == model.size(FEATURES, CLASSES) == 7 * 6 + 2 * 6 + 7 * 4
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = model.module(FEATURES, CLASSES).double().eval()
    named = [p for p in module.parameters() if p.requires_grad]
    torch.nn.utils.vector_to_parameters(torch.from_numpy(theta.copy()), named)
    expected = module(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(model.outputs(theta, X), expected, rtol=1e-12)


def test_start_is_that_of_pytorch_and_leaves_its_generator_and_threads_alone() -> None:
    model = Perceptron()
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    theta = model.start(FEATURES, CLASSES, np.random.default_rng(5))
    model.gradients(theta, *records())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    with torch.random.fork_rng():
        torch.manual_seed(int(np.random.default_rng(5).integers(2**63)))
        module = model.module(FEATURES, CLASSES)
    np.testing.assert_array_equal(
        theta, torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy().astype(float)
    )
    assert not np.array_equal(theta, model.start(FEATURES, CLASSES, np.random.default_rng(6)))


def test_arrays_that_must_not_be_written_to() -> None:
    model, (X, y) = Perceptron(), records()
    theta = model.start(FEATURES, CLASSES, np.random.default_rng(0))
    expected = model.clipped_sums(theta[None], X, y, [np.arange(5)], 1.0, 2)[0]
    frozen = copy.deepcopy((theta, X, y))
    for array in frozen:
        array.flags.writeable = False
    theta, X, y = frozen
    assert np.array_equal(model.clipped_sums(theta[None], X, y, [np.arange(5)], 1.0, 2)[0], expected)
    assert np.isfinite(model.clipped_sums(theta[None], X, y, [np.arange(5)])[0]).all()
    assert np.isfinite(model.losses(theta, X, y)).all()


def test_a_copy_in_another_process_is_the_same_model() -> None:
    model, (X, y) = Perceptron(), records()
    theta = model.start(FEATURES, CLASSES, np.random.default_rng(0))
    before = model.losses(theta, X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert np.array_equal(again.losses(theta, X, y), before)


def test_threads_do_not_disturb_each_other() -> None:
    model, (X, y) = Perceptron(), records(8)
    thetas = [model.start(FEATURES, CLASSES, np.random.default_rng(seed)) for seed in range(4)]

    def sums(theta: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [model.clipped_sums(theta[None], X, y, [np.arange(8)])[0] for _ in range(50)]
            + [model.start(FEATURES, CLASSES, np.random.default_rng(0))[None] for _ in range(50)]
        )

    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(sums, thetas))
    for theta, found in zip(thetas, together, strict=True):
        np.testing.assert_array_equal(found, sums(theta))


def test_parameters_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match="11 parameters fit no module of perceptron with 6 features"):
        Perceptron().outputs(np.zeros(11), records()[0])


@pytest.mark.verification
def test_a_scenario_runs_with_two_workers_and_is_verified(tmp_path) -> None:  # type: ignore[no-untyped-def]
    out, parts = str(tmp_path / "run"), ["--parts", "p2psim_torch_parts"]
    ran = started("run", str(PLUGINS / "convolution.yaml"), "--out", out, "--jobs", "2", *parts)
    assert ran.returncode == 0, ran.stderr
    checked = started("verify", out, *parts)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_learnt_models_become_modules(tmp_path: Path) -> None:
    for model in ("softmax", {"kind": "mlp", "layers": [5], "activation": "tanh"}):
        scenario = {
            "name": "digits", "replicas": 1,
            "network": {"topology": {"kind": "ring", "agents": 4}, "exchange": {"kind": "synchronous"}},
            "data": {"source": "digits", "classes": "all", "partition": "equal", "test_fraction": 0.5},
            "learning": {
                "model": model,
                "algorithm": {"kind": "decentralised-sgd", "step": 0.05, "time": 3},
                "regularizer": {"l2": 0},
            },
            "record": {"metrics": ["objective"], "every": 4, "models": True},
        }  # fmt: skip
        result = package.run(
            package.Scenario.from_dict(scenario), tmp_path / str(len(str(model))), jobs=1, progress=False
        )
        for agent in (None, 2):
            learnt = result.model(agent=agent)
            rows = np.random.default_rng(1).uniform(0, 16, (9, 64))
            outputs = learnt.to_torch()(torch.tensor(learnt.records(rows))).detach().numpy()
            assert outputs == pytest.approx(learnt.decision_function(rows), rel=1e-9)
            assert set(learnt.predict(rows)) <= set("0123456789")
