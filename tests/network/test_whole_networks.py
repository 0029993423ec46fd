"""Both engines make the same events of any network, byte for byte; these keep the invariants of the event format."""

import numpy as np
import pytest
from drawn_networks import Drawn, networks, networks_with_compute, networks_with_short_times
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.core.events import KINDS, OUTCOMES
from p2psim.network.verify import verify

# The first of them compiles all kernels, which takes minutes on a machine that has much else to do.
pytestmark = pytest.mark.timeout(1800)


def line(event: np.void) -> str:
    """An event to be read."""
    fields = (f"{name} {event[name]!s}" for name in ("agent", "peer", "version", "cause", "release"))
    time = float(event["time"])
    kind, outcome = KINDS[event["kind"]], OUTCOMES[event["outcome"]]
    return f"{event['seq']} at {time!r}: {kind} {outcome}, {', '.join(fields)}"


def first_difference(ours: np.ndarray, others: np.ndarray) -> str:
    """Events around the first that differ; empty if all are the same bytes."""
    size = min(ours.size, others.size)
    places = [place for place in range(size) if ours[place].tobytes() != others[place].tobytes()]
    if not places and ours.size == others.size:
        return ""
    place = places[0] if places else size
    shown = [
        f"{name:6} {line(events[i])}"
        for name, events, first in (("both", ours, max(place - 3, 0)), ("simpy", ours, place), ("array", others, place))
        for i in range(first, min(place if name == "both" else place + 3, events.size))
    ]  # fmt: skip
    return "\n".join([f"event {place} of {ours.size} and {others.size} differs", *shown])


def check(drawn: Drawn, events: np.ndarray) -> None:
    network = drawn.network
    total = verify(
        [events], network.links, drawn.limits, network.goes_on, by_edge=network.exchange.by_edge,
        resending=network.channel.resending, end=drawn.time, polled=network.exchange.polled, order=network.ordering,
        conduct=network.conduct,
    )  # fmt: skip
    assert total == events.size


CHUNKS = st.tuples(st.integers(1, 400), st.integers(1, 400))


@settings(max_examples=50, deadline=None)
@given(drawn=networks(), chunks=CHUNKS)
def test_event_by_event(drawn: Drawn, chunks: tuple[int, int]) -> None:
    compare(drawn, chunks)


@settings(max_examples=40, deadline=None)
@given(drawn=networks_with_compute(), chunks=CHUNKS)
def test_event_by_event_where_agents_take_time_to_compute(drawn: Drawn, chunks: tuple[int, int]) -> None:
    compare(drawn, chunks)


@settings(max_examples=25, deadline=None)
@given(drawn=networks_with_short_times(), chunks=CHUNKS)
def test_event_by_event_where_times_do_not_move_the_clock(drawn: Drawn, chunks: tuple[int, int]) -> None:
    compare(drawn, chunks)


@pytest.mark.verification
@settings(max_examples=500, deadline=None)
@given(drawn=st.one_of(networks(), networks_with_compute(), networks_with_short_times()), chunks=CHUNKS)
def test_many_networks_event_by_event(drawn: Drawn, chunks: tuple[int, int]) -> None:
    compare(drawn, chunks)


def compare(drawn: Drawn, chunks: tuple[int, int]) -> None:
    """Both engines make the same valid events."""
    events, ended = drawn.play("simpy", chunks[0])
    check(drawn, events)
    others, ended_too = drawn.play("array", chunks[1])
    difference = first_difference(events, others)
    assert not difference, difference
    check(drawn, others)
    assert ended == ended_too
    assert ended in ("commits", "time", "exhausted")


@settings(max_examples=20, deadline=None)
@given(drawn=networks(), chunk=st.integers(1, 50))
def test_chunks_are_pieces_of_one_stream(drawn: Drawn, chunk: int) -> None:
    whole, _ = drawn.play("array")
    pieces, _ = drawn.play("array", chunk)
    assert pieces.tobytes() == whole.tobytes()
