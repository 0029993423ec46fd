"""One simulation is a function of scenario and replica: not of what came before it, nor of what is recorded."""

import itertools
import math
import tracemalloc
from dataclasses import asdict

import numpy as np
import pytest
from star_cases import scenario, small_tree

from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import COMMIT
from p2psim.data.section import DataSection
from p2psim.data.sources import Arrays
from p2psim.learning.batches import GradientRule
from p2psim.learning.star.reference import reference_replay
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario
from p2psim.simulation import simulate as module
from p2psim.simulation.algorithms.star import StarCell
from p2psim.simulation.outcome import Outcome
from p2psim.simulation.session import Session
from p2psim.simulation.simulate import check, simulate
from p2psim.simulation.workspace import Workspace

PURPOSES = ["clocks", "latency", "loss", "response", "service", "noise", "data"]
LOSSY = {
    "network.exchange": {"kind": "poll", "interval": 0.7, "response": {"exponential": 0.2}},
    "network.channel": {"latency": {"uniform": [0.0, 0.1]}, "loss": 0.2},
}


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


def digest(outcome: Outcome) -> dict[str, object]:
    """Everything that an outcome says, as bytes."""
    said: dict[str, object] = {
        "ended": outcome.ended,
        "problem": outcome.problem_id,
        "warnings": outcome.warnings,
    }
    for name in ("events", "noise", "models"):
        array = getattr(outcome, name)
        said[name] = None if array is None else (array.shape, array.tobytes())
    for name in ("ledger", "agents", "links"):
        said[name] = {key: column.tolist() for key, column in (getattr(outcome, name) or {}).items()}
    said["series"] = [
        (one.metric, one.model, one.agent, one.step.tobytes(), one.time.tobytes(), one.value.tobytes())
        for one in outcome.series
    ]
    return said


def fresh(monkeypatch):
    """Forget all that earlier simulations left behind in this process."""
    monkeypatch.setattr(module, "SESSION", Session())


CELLS = [
    {},
    {"privacy.epsilon": 5.0},
    {"privacy.allocation": {"kind": "cap", "releases": 7}},
    {"privacy": {"mechanism": "none"}},
    {"network.exchange": {"kind": "request", "service": 0.2}},
    LOSSY,
    {"learning.loss": "squared", "learning.algorithm.theta_max": 2.0},
    {"data.source": {"kind": "linear-regression", "dimension": 2, "points": 30}},
]


def test_results_do_not_depend_on_what_was_simulated_before(tmp_path, monkeypatch):
    """Each cell alone in a fresh process and workspace, then all in every of several orders, and twice over."""
    cells = [scenario(changes) for changes in CELLS]
    alone = {}
    for i, replica in itertools.product(range(len(cells)), range(2)):
        fresh(monkeypatch)
        alone[i, replica] = digest(
            simulate(scenario(CELLS[i]), replica, Workspace(tmp_path / f"{i}.{replica}"))
        )
    random = np.random.default_rng(0)
    together = Workspace(tmp_path / "together")
    for _ in range(3):
        order = list(alone)
        random.shuffle(order)
        for i, replica in [*order, order[-1]]:
            assert digest(simulate(cells[i], replica, together)) == alone[i, replica]


ROUNDS = {"kind": "synchronous-averaging", "horizon": 12, "c1": 0.3, "theta_max": 2.0}
FEDAVG = {"kind": "fedavg", "commits": 6, "step": 0.1}
BUDGETS = [
    5.0,
    50.0,
    {"0": 1.0, "1": 70.0, "2": 3.0},
    math.inf,
    2.0,
    {"0": math.inf, "1": 7.0, "2": 3.0},
    2.0,
]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"independent": ["noise", "clocks"]},
        {"privacy.sensitivity": "empirical", "privacy.scale_records": 2.0},
        {"privacy.overlap": {"holders": 2, "form": "printed"}},
        {"privacy.allocation": {"kind": "cap", "releases": 7}},
        {"privacy.allocation": {"kind": "constant", "loss": 0.4}},
        {"privacy.mechanism": "gaussian", "privacy.delta": 1e-5, "privacy.accountant": ["rdp", "best"]},
        {"privacy.mechanism": "none"},
        {"network.exchange": "round", "learning.algorithm": ROUNDS},
        {"network.exchange": "round", "learning.algorithm": FEDAVG, "record.metrics": ["objective"]},
    ],
)
def test_cells_that_differ_in_budgets_are_what_each_is_alone(tmp_path, monkeypatch, changes):
    """What they share changes neither what is said of a cell before it runs, nor its results."""

    def said(study: Scenario, workspace: Workspace) -> list[object]:
        known = check(study, workspace, keep=True)
        privacy = [asdict(agent) for agent in known.privacy]
        outcomes = [digest(simulate(study, replica, workspace)) for replica in (0, 1)]
        return [known.facts, known.warnings, known.events, known.records, privacy, *outcomes]

    fresh(monkeypatch)
    base, together = scenario({**changes, "sweep": {"privacy.epsilon": BUDGETS[:-1]}}), Workspace(tmp_path)
    shared = [said(cell.scenario, together) for cell in cells(base)]
    for budget, known in zip(BUDGETS, shared, strict=False):
        fresh(monkeypatch)
        assert said(scenario({**changes, "privacy.epsilon": budget}), Workspace(None)) == known
    assert len({str(known) for known in shared}) == (1 if changes.get("privacy.mechanism") == "none" else 6)


def test_a_replica_that_does_not_fit_in_memory_is_the_same(workspace, monkeypatch):
    expected = digest(simulate(scenario(), 0, workspace))
    monkeypatch.setattr("p2psim.simulation.session.KEEP_BYTES", 0)
    fresh(monkeypatch)
    for _ in range(2):
        assert digest(simulate(scenario(), 0, workspace)) == expected


def test_events_are_kept_only_for_other_cells(workspace, monkeypatch):
    expected, held = simulate(scenario(), 0, workspace), {}
    for share in (False, True):
        fresh(monkeypatch)
        tracemalloc.start()
        assert digest(simulate(scenario(), 0, workspace, share=share)) == digest(expected)
        held[share] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert held[True] - held[False] >= expected.events.nbytes


def test_a_simulation_that_was_broken_off_leaves_nothing_behind(workspace, monkeypatch):
    expected = digest(simulate(scenario(), 0, workspace))
    fresh(monkeypatch)

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("p2psim.learning.star.replay.StarReplay.feed", fail)
        with pytest.raises(KeyboardInterrupt):
            simulate(scenario(), 0, workspace)
    assert digest(simulate(scenario(), 0, workspace)) == expected


@pytest.mark.parametrize(
    "record",
    [
        {"metrics": ["relative_fitness", "isolated_fitness"], "every": 7, "events": True, "models": True},
        {"metrics": ["relative_fitness"], "every": 7, "noise": True, "data": True},
        {"metrics": ["relative_fitness"], "every": 1},
        {"metrics": ["relative_fitness"], "every": {"time": 0.5}, "events": True},
        {"metrics": [], "events": True},
    ],
)
@pytest.mark.parametrize("network", [{}, LOSSY], ids=["ideal", "lossy"])
def test_what_is_recorded_changes_nothing_else(workspace, record, network):
    base, other = (
        simulate(scenario(network), 0, workspace),
        simulate(scenario({**network, "record": record}), 0, workspace),
    )
    for name in ("events", "noise"):
        if getattr(other, name) is not None:
            assert getattr(other, name).tobytes() == getattr(base, name).tobytes()
    assert digest(other)["ledger"] == digest(base)["ledger"]
    assert other.ended == base.ended
    if other.series and record["every"] in (1, 7):
        psi, known = other.series[0], base.series[0]
        shared = np.isin(psi.step, known.step)
        assert psi.value[shared].tobytes() == known.value[np.isin(known.step, psi.step)].tobytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy.epsilon": 3.0},
        {"privacy.epsilon": {0: 1.0, 1: 5.0, 2: 1e6}},
        {"privacy.scale_records": 10.0},
        {"privacy.sensitivity": {"kind": "declared", "bound": 4.0}},
        {"learning.algorithm.rho": 1e-3},
        {"learning.loss": {"kind": "squared", "intercept": True}},
        {"record.metrics": ["isolated_fitness"]},
        {"record.every": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("network", [{}, LOSSY], ids=["ideal", "lossy"])
def test_clocks_do_not_move(workspace, changes, network):
    """Events are those of the network; budgets, metrics and losses have no say in them."""
    base = simulate(scenario(network), 1, workspace).events
    assert simulate(scenario({**network, **changes}), 1, workspace).events.tobytes() == base.tobytes()


@pytest.mark.parametrize("allocation", ["horizon", {"kind": "cap", "releases": 9}, "geometric"])
def test_both_engines_give_all_the_same(workspace, allocation):
    outcomes = [
        digest(simulate(scenario({"network.engine": engine, "privacy.allocation": allocation}), 2, workspace))
        for engine in ("simpy", "array", "auto")
    ]
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_another_seed_changes_everything(workspace):
    outcomes = [simulate(scenario({**LOSSY, "seed": seed}), 0, workspace) for seed in range(7)]
    for one, other in itertools.combinations(outcomes, 2):
        for name in ("noise", "models"):
            a, b = getattr(one, name), getattr(other, name)
            rows = min(len(a), len(b))
            # The starting model is zero in any case.
            assert (
                (a[1:rows] != b[1:rows]).all() if name == "noise" else not np.array_equal(a[:rows], b[:rows])
            )
        assert one.events["time"][:50].tolist() != other.events["time"][:50].tolist()
        assert one.problem_id != other.problem_id


def test_replicas_differ_and_generated_data_is_drawn_anew(workspace):
    outcomes = [simulate(scenario(), replica, workspace) for replica in range(4)]
    for one, other in itertools.combinations(outcomes, 2):
        assert one.problem_id != other.problem_id
        assert not np.intersect1d(one.noise, other.noise).size
        assert not np.intersect1d(one.events["time"], other.events["time"]).size
        X, Z = (workspace.arrays(outcome.problem_id)["X"] for outcome in (one, other))
        assert not np.intersect1d(X, Z).size


def test_data_that_is_not_drawn_anew_is_the_same_in_all_replicas(workspace):
    one = scenario({"data.redraw": "never"})
    outcomes = [simulate(one, replica, workspace) for replica in range(3)]
    assert len({outcome.problem_id for outcome in outcomes}) == 1
    assert not np.array_equal(outcomes[0].noise[:9], outcomes[1].noise[:9])


@pytest.mark.parametrize("purpose", PURPOSES)
def test_independent_draws_differ_between_cells_and_others_stay(workspace, purpose):
    """Cells that share everything but one purpose: its draws differ, by content and not by position."""
    changes = {**LOSSY, "independent": [purpose]}
    if purpose == "service":
        changes = {
            "network.exchange": {"kind": "request", "service": {"exponential": 0.1}},
            "independent": ["service"],
        }
    if purpose == "clocks":
        changes = {"independent": ["clocks"]}
    one, other = (simulate(scenario({**changes, "privacy.epsilon": e}), 0, workspace) for e in (100.0, 200.0))
    shared = {**changes, "independent": []}
    base = simulate(scenario({**shared, "privacy.epsilon": 100.0}), 0, workspace)
    if purpose == "noise":
        assert one.events.tobytes() == other.events.tobytes() == base.events.tobytes()
        rows = min(len(one.noise), 20)
        assert (np.abs(one.noise[:rows] / other.noise[:rows] - 2) > 1e-9).all()
    elif purpose == "data":
        assert one.events.tobytes() == other.events.tobytes()
        assert len({one.problem_id, other.problem_id, base.problem_id}) == 3
    else:
        assert one.events.tobytes() != other.events.tobytes()
        assert one.problem_id == other.problem_id == base.problem_id
        # Noise belongs to (owner, release), whatever the order of events.
        assert one.noise[0].tobytes() == base.noise[0].tobytes()
        np.testing.assert_allclose(one.noise[0], 2 * other.noise[0], rtol=1e-14)
    again = simulate(
        scenario({**changes, "privacy.epsilon": 100.0, "name": "renamed", "replicas": 9}), 0, workspace
    )
    assert digest(again) == digest(one)


def test_common_random_numbers_are_the_default(workspace):
    one, other = (simulate(scenario({"privacy.epsilon": e}), 0, workspace) for e in (100.0, 200.0))
    np.testing.assert_allclose(one.noise, 2 * other.noise, rtol=1e-14)
    assert one.events.tobytes() == other.events.tobytes()


def test_workspace_gives_the_same_case_from_memory_and_disk(tmp_path):
    one = scenario({"data.redraw": "never"})
    first = Workspace(tmp_path / "old")
    first.case(one, 0)
    cases = [
        first.case(one, 0),
        first.case(one, 5),
        Workspace(tmp_path / "old").case(one, 0),
        Workspace(tmp_path / "new").case(one, 3),
    ]
    assert first.problems() == [cases[0].problem_id]
    for case in cases[1:]:
        assert (case.problem_id, case.labels, case.groups, case.fitted, case.warnings) == (
            cases[0].problem_id, cases[0].labels, cases[0].groups, cases[0].fitted, cases[0].warnings,
        )  # fmt: skip
        assert (case.x_l1, case.x_max, case.y_max) == (cases[0].x_l1, cases[0].x_max, cases[0].y_max)
        assert case.arrays.keys() == cases[0].arrays.keys()
        assert {"X", "y", "offsets", "optimum", "minimum"} < case.arrays.keys()
        for name, array in case.arrays.items():
            assert array.tobytes() == cases[0].arrays[name].tobytes()
    arrays, reread = (
        first.arrays(cases[0].problem_id),
        Workspace(tmp_path / "old").arrays(cases[0].problem_id),
    )
    assert arrays.keys() == reread.keys()
    assert all(np.array_equal(arrays[name], reread[name]) for name in arrays)


def test_cases_that_no_other_process_reads_are_the_same_kept_let_go_and_read_again(tmp_path):
    """Ten cases, of which a workspace keeps fewer open; the first is written then, and no redrawn one ever is."""
    studies = [scenario({"data.redraw": "never", "seed": seed}) for seed in range(10)]
    shared, alone = Workspace(tmp_path / "shared"), Workspace(tmp_path / "alone", alone=True)
    (tmp_path / "alone").mkdir()
    first = alone.case(studies[0], 0)
    assert alone.problems() == [first.problem_id]
    assert not list((tmp_path / "alone").iterdir())
    for study in [*studies, *studies]:
        case, other = alone.case(study, 0), shared.case(study, 0)
        assert (case.problem_id, case.labels, case.fitted) == (other.problem_id, other.labels, other.fitted)
        assert {name: array.tobytes() for name, array in case.arrays.items()} == {
            name: array.tobytes() for name, array in other.arrays.items()
        }
    assert alone.problems() == shared.problems()
    assert alone.arrays(first.problem_id).keys() == first.arrays.keys()
    for replica in range(10):
        alone.case(scenario(), replica)
    assert alone.problems() == shared.problems()


def test_redrawn_data_stays_off_the_disk(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.case(scenario(), 0)
    simulate(scenario(), 3, workspace)
    assert workspace.problems() == []
    with pytest.raises(KeyError):
        workspace.arrays("nothing-of-this-name")


def test_simulation_is_what_the_reference_makes_of_its_records(workspace):
    for changes in CELLS:
        one = scenario({**changes, "record.every": 1})
        outcome = simulate(one, 0, workspace, check_events=True)
        state = StarCell.cell(one, workspace.case(one, 0), 0)
        sensitivity = one.privacy.sensitivity
        clip = sensitivity.bound if sensitivity is not None else np.inf
        plain = reference_replay(
            state.problem, state.method, outcome.events, outcome.noise, GradientRule(clip)
        )
        np.testing.assert_allclose(outcome.models, plain, rtol=0, atol=1e-12 * np.abs(plain).max())
        X, y = state.problem.X, state.problem.y

        def fitness(theta, X=X, y=y, l2=one.learning.regularizer.l2):
            return l2 * theta @ theta + np.mean((X @ theta - y) ** 2)

        best = fitness(state.problem.optimum)
        psi = [fitness(theta) / best - 1 for theta in plain]
        np.testing.assert_allclose(outcome.series[0].value, psi, rtol=1e-9, atol=1e-9)


def test_isolated_fitness_is_given_for_every_owner(workspace):
    outcome = simulate(scenario({"record.metrics": ["isolated_fitness"]}), 0, workspace)
    assert [one.agent for one in outcome.series] == [0, 1, 2]
    for one in outcome.series:
        assert one.step.tolist() == [0, 60]
        assert one.value[0] == one.value[1] >= 0


def test_arrays_run_like_any_other_data(workspace):
    """θ_i pulled to one target by records that all agree: ψ → 0, and ρ from h makes lr·λ_max what was asked for."""
    random = np.random.default_rng(2)
    X = [random.standard_normal((20, 2)) for _ in range(3)]
    source = Arrays.per_agent(X, [x @ [1.0, -0.5] + 0.01 * random.standard_normal(20) for x in X])
    tree = small_tree()
    tree["data"] = DataSection(source=source)
    tree["privacy"] = {"mechanism": "none"}
    tree["learning"]["algorithm"]["horizon"] = 400
    one = scenario(tree=tree)
    outcome = simulate(one, 0, workspace)
    assert outcome.series[0].value[0] > 100
    assert outcome.series[0].value[-1] < 0.05
    state = StarCell.cell(one, workspace.case(one, 0), 0)
    steepest = max(np.linalg.eigvalsh(2 * x.T @ x / 20)[-1] for x in X)
    assert state.rho / (400**2 * 2e-4) * steepest == pytest.approx(0.5, rel=1e-12)
    assert outcome.ledger["data_dependent_step"].all()


def test_runs_end_by_commits_or_when_no_one_can_act(workspace):
    full = simulate(scenario(), 0, workspace)
    assert full.ended == "commits"
    assert np.count_nonzero(full.events["kind"] == COMMIT) == 60
    spent = simulate(scenario({"privacy.allocation": {"kind": "cap", "releases": 4}}), 0, workspace)
    assert spent.ended == "exhausted"
    assert spent.series[0].step[-1] == 12
    # Played from memory, it still says how it ended.
    assert (
        simulate(scenario({"privacy.allocation": {"kind": "cap", "releases": 4}}), 0, workspace).ended
        == "exhausted"
    )


def test_what_the_data_does_not_allow_is_named(workspace):
    with pytest.raises(MeaningError, match=r"^learning\.loss: hinge needs labels that are"):
        simulate(scenario({"learning.loss": "hinge"}), 0, workspace)
    with pytest.raises(InputError, match=r"^privacy\.epsilon: agent 2 has no value"):
        simulate(scenario({"privacy.epsilon": {0: 1.0, 1: 2.0}}), 0, workspace)
    gaussian = {"data.source": {"kind": "linear-regression", "x": "gaussian", "points": 20}}
    with pytest.raises(MeaningError, match=r"^privacy\.sensitivity: bounds needs a public bound on x"):
        simulate(scenario({**gaussian, "privacy.sensitivity": "bounds"}), 0, workspace)
    with pytest.raises(MeaningError, match=r"^privacy\.sensitivity: bounds needs a public bound on y"):
        simulate(scenario({"privacy.sensitivity": "bounds"}), 0, workspace)
    steep = {"privacy.allocation": {"kind": "geometric", "ratio": 1e-300}}
    with pytest.raises(
        MeaningError, match=r"^privacy\.allocation: the noise of release \d+ of agent \d overflows"
    ):
        simulate(scenario(steep), 0, workspace)


def test_noise_that_is_not_finite_is_an_error(workspace, monkeypatch):
    monkeypatch.setattr(
        "p2psim.privacy.mechanisms.Laplace.fill_unit",
        lambda mechanism, key, agents, numbers, out: out.fill(np.nan),
    )
    with pytest.raises(MeaningError, match="laplace drew noise that is not a finite number"):
        simulate(scenario({"seed": 99}), 0, workspace)
