"""What happens at regular times: the k-th at k·interval, multiplied and never summed, the end of the run included."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from network_cases import (
    COMMIT,
    DELIVER,
    LEARNER,
    SEND,
    Broadcast,
    Channel,
    Poll,
    Round,
    complete,
    of_kind,
    play,
    star,
)

from p2psim.core.events import JOIN, LEAVE
from p2psim.network.availability import Diurnal, Scripted
from p2psim.network.verify import EventsError, verify
from p2psim.scenario.record import EveryTime
from p2psim.simulation.recorder import Recorder

#: Numbers as people write them: whole multiples of a power of ten.
UNITS = st.sampled_from([1, 10, 100, 1000])


def queries(events: np.ndarray) -> np.ndarray:
    return events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]


def multiples(interval: float, end: float, number: int) -> list[float]:
    """The first multiples; the last one is the end where rounding alone parts them."""
    found = [k * interval for k in range(1, number + 1)]
    assert all(time <= end * (1 + 1e-15) for time in found)
    return [min(time, end) for time in found]


ENGINES = pytest.mark.parametrize(
    ("exchange", "engine"),
    [(Poll, "simpy"), (Round, "simpy"), (Round, "array")],
    ids=lambda one: str(one)[-8:],
)


@ENGINES
@pytest.mark.parametrize(("end", "number"), [(1.0, 10), (3.0, 30), (0.3, 3), (0.7, 7), (2.999, 29)])
def test_polls_and_rounds_of_a_tenth(exchange: Any, engine: str, end: float, number: int) -> None:
    events, ended = play(star(2), exchange(interval=0.1), engine=engine, time=end)
    assert ended == "time"
    assert queries(events)["time"].tolist() == multiples(0.1, end, number)
    # Nothing takes time, so that all of it is over at the end.
    assert of_kind(events, COMMIT).size == number * (2 if exchange is Poll else 1)


@ENGINES
@settings(max_examples=60, deadline=None)
@given(a=st.integers(1, 999), unit=UNITS, periods=st.integers(0, 300), rest=st.integers(0, 998))
def test_polls_and_rounds(exchange: Any, engine: str, a: int, unit: int, periods: int, rest: int) -> None:
    """Number and exact times, counted in whole numbers, of intervals and ends that are decimals."""
    interval, end = a / unit, (periods * a + rest % a) / unit
    if end == 0:
        return
    events, _ = play(star(1), exchange(interval=interval), engine=engine, time=end)
    assert queries(events)["time"].tolist() == multiples(interval, end, periods)
    verify([events], star(1), end=end, polled=interval if exchange is Poll else None)


@settings(max_examples=40, deadline=None)
@given(a=st.integers(1, 99), b=st.integers(1, 300), unit=UNITS)
def test_rounds_that_only_their_deadline_closes(a: int, b: int, unit: int) -> None:
    """Nobody answers in time: rounds follow at k·interval, or after k deadlines where these are longer."""
    interval, deadline = a / unit, b / unit
    slow = Round(interval=interval, deadline=deadline, response=1e6)
    events, _ = play(star(2), slow, commits=60)
    k = np.arange(60)
    began = (k + 1) * interval if b <= a else interval + k * deadline
    assert queries(events)["time"].tolist() == began.tolist()
    closed = began + deadline if b < a else (k + 2) * interval if a == b else interval + (k + 1) * deadline
    np.testing.assert_allclose(of_kind(events, COMMIT)["time"], closed, rtol=1e-15)


@settings(max_examples=40, deadline=None)
@given(a=st.integers(1, 999), unit=UNITS, share=st.sampled_from([0.0, 0.1, 0.5, 0.99]))
def test_rounds_that_close_in_time_keep_to_the_interval(a: int, unit: int, share: float) -> None:
    interval = a / unit
    events, _ = play(star(2), Round(interval=interval, response=share * interval), commits=100)
    assert queries(events)["time"].tolist() == (interval * np.arange(1, 101)).tolist()


@settings(max_examples=60, deadline=None)
@given(
    a=st.integers(1, 999),
    unit=UNITS,
    phase=st.integers(0, 99),
    there=st.integers(1, 99),
    days=st.integers(1, 40),
)
@example(a=10, unit=10, phase=90, there=10, days=3)
def test_days(a: int, unit: int, phase: int, there: int, days: int) -> None:
    """An agent is there in [k + phase, k + phase + participation) of each period, counted in whole numbers."""
    period, end = a / unit, days * a / unit
    kind = Diurnal(period=period, participation=there / 100, phase=phase / 100)
    events, _ = play(star(1), Poll(interval=1e9), availability=kind, time=end)
    joins, leaves = of_kind(events, JOIN)["time"].tolist(), of_kind(events, LEAVE)["time"].tolist()
    away_at_first = not (phase == 0 or phase + there > 100)
    came = [day for day in range(days + 1) if 0 < day * 100 + phase <= days * 100]
    went = [day for day in range(-1, days + 1) if 0 < day * 100 + phase + there <= days * 100]
    assert joins == [min((day + phase / 100) * period, end) for day in came]
    assert leaves == [0.0] * away_at_first + [
        min((day + (phase / 100 + there / 100)) * period, end) for day in went
    ]


@settings(max_examples=40, deadline=None)
@given(turns=st.lists(st.integers(1, 10**6), min_size=2, max_size=20, unique=True).map(sorted), unit=UNITS)
def test_scripted_turns_are_at_their_times(turns: list[int], unit: int) -> None:
    times = [turn / unit for turn in turns[: len(turns) // 2 * 2]]
    spans = [{"agent": 0, "begin": a, "end": b} for a, b in list(pairwise(times))[::2]]
    kind = Scripted.model_validate({"intervals": spans, "spans_are": "absent"})
    events, _ = play(star(1), Poll(interval=1e9), availability=kind, time=times[-1])
    assert events["time"].tolist() == times


@settings(max_examples=25, deadline=None)
@given(a=st.integers(1, 999), seed=st.integers(0, 99), shared=st.booleans(), cells=st.integers(200, 10**6))
def test_slots(a: int, seed: int, shared: bool, cells: int) -> None:
    """Transmissions of one slot end at its end: whole multiples of the airtime, exactly."""
    airtime = a / 1000
    channel = Channel(airtime=airtime, collision="slotted", shared=shared)
    events, _ = play(
        complete(4), Broadcast(), channel, seed=seed, time=60 * airtime, rates=np.full(4, 0.3 / airtime)
    )
    times = of_kind(events, DELIVER)["time"]
    assert times.tolist() == (np.rint(times / airtime) * airtime).tolist()


@settings(max_examples=60, deadline=None)
@given(
    a=st.integers(1, 99),
    b=st.integers(1, 99),
    unit=UNITS,
    number=st.integers(1, 100),
    pieces=st.integers(1, 9),
)
def test_records_by_time_hold_what_happens_at_their_moments(
    a: int, b: int, unit: int, number: int, pieces: int
) -> None:
    """Polls at k·a/unit, records at m·b/unit: of those at the same moment on paper, the record comes after."""
    events, _ = play(star(1), Poll(interval=a / unit), commits=number)
    recorder, found = Recorder(EveryTime(time=b / unit)), []
    for piece in np.array_split(events, pieces):
        marks = recorder.read(piece)
        found += zip(marks.steps.tolist(), marks.times.tolist(), strict=True)
    last = Fraction(number * a, b)
    records = math.ceil(last) - 1 if last > 1 else 0
    assert found[0] == (0, 0.0)
    assert found[1:] == [(m * b // a, m * (b / unit)) for m in range(1, records + 1)]


@pytest.mark.parametrize(("place", "time"), [(1, 0.25), (1, 0.2 + 1e-15)])
def test_a_poll_that_is_not_due_breaks_an_invariant(place: int, time: float) -> None:
    events, _ = play(star(1), Poll(interval=0.1), time=0.35)
    assert verify([events], star(1), end=0.35, polled=0.1) == events.size
    query = queries(events)["seq"][place]
    events["time"][query : query + 5] = time
    with pytest.raises(EventsError, match=r"due at a multiple of 0\.1"):
        verify([events], star(1), end=0.35, polled=0.1)


def test_nothing_happens_after_the_end() -> None:
    events, _ = play(star(1), Poll(interval=0.1), time=0.35)
    with pytest.raises(EventsError, match=r"the run ended at 0\.25"):
        verify([events], star(1), end=0.25, polled=0.1)
