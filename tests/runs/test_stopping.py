"""Replicas until an interval is narrow: the rule errs as rarely as it says, and decides the same everywhere."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import small_study as small
from hypothesis import given
from hypothesis import strategies as st
from language import VALID, messages
from scipy import stats

import p2psim
from p2psim.core.errors import SimulationError
from p2psim.runs import batches, pool
from p2psim.runs.work import interval_of, judge, looks, order_interval, share_of
from p2psim.scenario.record import Sequential, Until

RULE = {"until": {"metric": "relative_fitness", "width": 0.75}, "least": 5, "most": 92}


def rule(width: float, least: int = 10, most: int = 300, **until: object) -> Sequential:
    return Sequential(until=Until(metric="m", width=width, **until), least=least, most=most)


@given(st.integers(2, 200), st.integers(0, 5000))
def test_looks_grow_from_least_to_most(least: int, beyond: int) -> None:
    numbers = list(looks(least, least + beyond))
    assert numbers[0] == least
    assert numbers[-1] == least + beyond
    assert all(b > a for a, b in pairwise(numbers))
    assert all(b == math.ceil(1.5 * a) for a, b in pairwise(numbers[:-1]))


@given(st.floats(1e-6, 0.5))
def test_no_number_of_looks_spends_more_than_there_is(error: float) -> None:
    assert sum(share_of(look, error) for look in range(1, 10_000)) == pytest.approx(error, rel=2e-4)
    assert sum(share_of(look, error) for look in range(1, 10_000)) < error


@pytest.mark.parametrize("size", range(2, 20))
def test_the_extremes_miss_the_median_with_a_chance_that_is_a_power_of_two(size: int) -> None:
    """All n values lie on one side with probability 2·2⁻ⁿ, which is allowed exactly."""
    interval = order_interval(np.arange(float(size)), 1 - 2.0 ** (1 - size))
    assert (interval.low, interval.high) == (0.0, size - 1.0)


@given(st.integers(1, 60), st.floats(0.5, 0.999))
def test_order_statistics_cover_the_median_of_any_law(size: int, confidence: float) -> None:
    """Of n uniform values, P(k-th smallest ≤ 1/2 ≤ k-th largest) by the beta law of order statistics."""
    values = np.arange(1.0, size + 1)
    interval = order_interval(values, confidence)
    assert interval.estimate == np.median(values)

    def coverage(k: int) -> float:
        return float(stats.beta.cdf(0.5, k, size + 1 - k) - stats.beta.cdf(0.5, size + 1 - k, k))

    best = [k for k in range(1, (size + 1) // 2 + 1) if coverage(k) >= confidence]
    if not best:
        assert not interval.known
    else:
        assert (interval.low, interval.high) == (max(best), size + 1 - max(best))


@pytest.mark.parametrize(
    ("statistic", "truth", "law"),
    [
        ("mean", 0.0, lambda rng, n: rng.normal(size=n)),
        ("mean", 0.2, lambda rng, n: rng.normal(0.2, 1.0, size=n)),
        ("median", 0.0, lambda rng, n: rng.standard_cauchy(size=n)),
        ("median", 0.0, lambda rng, n: rng.exponential(size=n) - math.log(2)),
    ],
)
def test_the_interval_of_a_stop_misses_the_truth_as_rarely_as_it_says(statistic, truth, law) -> None:
    """600 cells whose width is relative to an estimate near zero, where stopping picks the estimates that are off.

    False alarm: below 1e-6, by the binomial law. Without the division among looks about a third is missed.
    """
    wanted = rule(1.9, confidence=0.9, statistic=statistic)
    rng = np.random.default_rng(7)
    missed = stopped = 0
    for _ in range(600):
        verdict = judge(wanted, dict(enumerate(law(rng, wanted.most))))
        if verdict.why == "reached":
            stopped += 1
            missed += not verdict.interval.low <= truth <= verdict.interval.high
    assert missed <= stats.binom.ppf(1 - 1e-6, 600, 0.1)
    assert truth == 0 or stopped > 100


def test_first_look_of_normal_values_by_hand() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0])
    wanted = rule(1.0, least=4, most=8, confidence=0.9, relative=False)
    # s = sqrt(5/3), t(3) at 1 − .05/2 = 3.1824: the first look spends half of .1.
    half = 3.182446305 * math.sqrt(5 / 3) / 2
    interval = interval_of(wanted.until, values, 1)
    assert (interval.low, interval.high) == (pytest.approx(2.5 - half), pytest.approx(2.5 + half))
    held = dict(enumerate(values))
    assert judge(wanted, held).replicas == 6
    assert judge(rule(2 * half + 1e-6, 4, 8, confidence=0.9, relative=False), held).why == "reached"
    assert judge(rule(2 * half - 1e-6, 4, 8, confidence=0.9, relative=False), held).why == ""
    assert judge(rule(2 * half / 2.5 + 1e-6, 4, 8, confidence=0.9), held).why == "reached"
    assert judge(rule(2 * half / 2.5 - 1e-6, 4, 8, confidence=0.9), held).why == ""


def test_values_that_say_nothing_never_stop_a_cell_early() -> None:
    for bad in (math.nan, math.inf):
        held = dict.fromkeys(range(300), 1.0) | {3: bad}
        assert judge(rule(0.5), held).why == "most"
    held = dict.fromkeys(range(300), 1.0) | {3: math.inf}
    assert judge(rule(0.5, statistic="median"), held).why == "reached"


def test_failed_replicas_are_left_out_and_a_cell_of_nothing_else_stops() -> None:
    assert judge(rule(0.5), dict.fromkeys(range(1, 10), 1.0), {0}).why == "reached"
    assert judge(rule(0.5), {}, set(range(10))).why == "failed"
    assert judge(rule(0.5), {}, set(range(9))).why == ""


@given(st.integers(0, 299), st.integers(0, 20))
def test_replicas_beyond_a_look_do_not_change_it(beyond: int, seed: int) -> None:
    values = dict(enumerate(np.random.default_rng(seed).normal(1.0, 0.5, 300).tolist()))
    wanted = rule(0.3)
    whole = judge(wanted, values)
    upto = {replica: value for replica, value in values.items() if replica < max(beyond, whole.replicas)}
    assert judge(wanted, upto) == whole


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    return p2psim.run(
        small.scenario(replicas=RULE), tmp_path_factory.mktemp("sequential") / "run", progress=False
    )


def test_cells_stop_where_the_tables_say(reference: p2psim.Result) -> None:
    """The decision from the tables alone, by pandas."""
    metrics, sizes = reference.metrics, []
    for number, cell in enumerate(reference.manifest["cells"]):
        rows = metrics[metrics["cell"] == number].sort_values(["replica", "step"])
        values = rows.groupby("replica")["value"].last().to_numpy()
        for look, size in enumerate([5, 8, 12, 18, 27, 41, 62, 92], 1):
            sample = values[:size]
            confidence = 1 - 0.05 / (look * (look + 1))
            low, high = stats.t.interval(confidence, size - 1, sample.mean(), stats.sem(sample))
            if high - low <= 0.75 * abs(sample.mean()) or size == 92:
                break
        stopped = cell["stopped"]
        assert (stopped["replicas"], stopped["look"]) == (size, look)
        assert stopped["why"] == ("reached" if high - low <= 0.75 * abs(sample.mean()) else "most")
        assert (stopped["low"], stopped["high"]) == (pytest.approx(low), pytest.approx(high))
        assert cell["finished"] == f"0-{size - 1}"
        sizes.append(size)
    assert len(set(sizes)) == 2


@pytest.mark.parametrize("jobs", [2, None])
def test_number_of_workers_changes_no_decision(
    reference: p2psim.Result, tmp_path: Path, jobs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.01)
    monkeypatch.setattr(pool, "WORTH_A_POOL", 0.01)
    p2psim.run(small.scenario(replicas=RULE), tmp_path / "run", jobs=jobs, progress=False)
    assert small.digests(tmp_path / "run") == small.digests(reference.path)


@pytest.mark.parametrize("after", [1, 7, 30])
def test_interrupted_and_resumed(
    reference: p2psim.Result, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from p2psim.simulation import simulate

    whole, left = simulate.simulate, [after]

    def until_interrupted(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(simulate, "simulate", until_interrupted)
    monkeypatch.setattr(simulate, "simulated_at_once", lambda *given: 1)
    with pytest.raises(KeyboardInterrupt):
        p2psim.run(small.scenario(replicas=RULE), tmp_path / "run", progress=False)
    monkeypatch.undo()
    p2psim.run(small.scenario(replicas=RULE), tmp_path / "run", progress=False)
    assert small.digests(tmp_path / "run") == small.digests(reference.path)
    before = small.snapshot(tmp_path / "run")
    p2psim.run(small.scenario(replicas=RULE), tmp_path / "run", progress=False)
    assert small.snapshot(tmp_path / "run") == before


def test_replicas_held_already_are_used_and_more_are_added(reference: p2psim.Result, tmp_path: Path) -> None:
    p2psim.run(small.scenario(replicas=3), tmp_path / "run", progress=False)
    p2psim.run(small.scenario(replicas=RULE), tmp_path / "run", progress=False)
    assert small.digests(tmp_path / "run") == small.digests(reference.path)
    narrower = RULE | {"until": RULE["until"] | {"width": 0.65}}
    result = p2psim.run(small.scenario(replicas=narrower), tmp_path / "run", progress=False)
    p2psim.run(small.scenario(replicas=narrower), tmp_path / "afresh", progress=False)
    assert small.digests(tmp_path / "run") == small.digests(tmp_path / "afresh")
    assert result.manifest["replicas"]["until"]["width"] == 0.65


def test_a_cell_of_failures_stops_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from p2psim.simulation import simulate

    whole, tried = simulate.simulate, []

    def poisoned(scenario, replica, *rest):
        if scenario.privacy.epsilon == 1:
            tried.append(replica)
            raise ValueError("poisoned")
        return whole(scenario, replica, *rest)

    monkeypatch.setattr(simulate, "simulate", poisoned)
    monkeypatch.setattr(simulate, "simulated_at_once", lambda *given: 1)
    with pytest.raises(SimulationError, match="poisoned"):
        p2psim.run(small.scenario(replicas=RULE), tmp_path / "run", progress=False)
    cells = json.loads((tmp_path / "run" / "manifest.json").read_text())["cells"]
    assert [cell["stopped"]["why"] for cell in cells] == ["failed", "reached"]
    assert tried == list(range(5))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "{until: {metric: throughput, width: 1}}",
            "replicas.until.metric: unknown recorded metric 'throughput'; known: relative_fitness",
        ),
        (
            "{until: {metric: relative_fitness, width: 1}, least: 20, most: 10}",
            "replicas.most: must be at least least, 20; got 10",
        ),
        (
            "{until: {metric: relative_fitness, width: 0}}",
            "replicas.until.width: must be a positive number, got 0",
        ),
        (
            "{until: {metric: relative_fitness, width: 1, model: mian}}",
            "replicas.until.model: unknown model 'mian'; known: main; did you mean main?",
        ),
    ],
)
def test_a_rule_that_cannot_be(written: str, said: str) -> None:
    (message,) = messages(VALID.replace("replicas: 2", f"replicas: {written}"))
    assert message.split(": ", 1)[1] == said


def test_a_rule_is_no_part_of_what_a_folder_is_bound_to() -> None:
    assert small.scenario(replicas=RULE).identity() == small.scenario().identity()


def test_a_number_on_the_command_line_replaces_the_rule() -> None:
    written = VALID.replace("replicas: 2", "replicas: {until: {metric: relative_fitness, width: 1}}")
    assert p2psim.Scenario.parse(written, overrides=["replicas=3"]).replicas == 3
    changed = p2psim.Scenario.parse(written, overrides=["replicas.until.width=0.5", "replicas.most=50"])
    assert (changed.replicas.until.width, changed.replicas.most) == (0.5, 50)
    assert p2psim.Scenario.parse(changed.to_yaml()) == changed
