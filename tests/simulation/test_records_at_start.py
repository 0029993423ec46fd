"""What is recorded at time 0 is the state after what happens then: agents that are away at first are not there."""

import numpy as np
import pytest

from p2psim.core.distributions import Distribution
from p2psim.core.events import EVENT
from p2psim.core.randomness import Streams
from p2psim.network.availability import (
    AllOf,
    Always,
    AnyAvailability,
    Bernoulli,
    Diurnal,
    Join,
    LearnerOutage,
    Leave,
    Outage,
    Remove,
    Renewal,
    Scripted,
)
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Poll
from p2psim.network.graph import TopologyInputs
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Star, draw_links
from p2psim.privacy.releases import joined
from p2psim.scenario.record import EveryTime, RecordSection
from p2psim.simulation.check import compare_network
from p2psim.simulation.recorder import NetworkWatch, Recorder, marks_of_run

N = 2000

SPANS = [{"agent": i, "begin": 0.0 if i < N // 4 else 0.3, "end": 2.0} for i in range(N // 2)]

#: Kind, expected share of agents that are there at time 0, and whether agents draw for themselves.
KINDS: dict[str, tuple[AnyAvailability, float, bool]] = {
    "always": (Always(), 1.0, False),
    "bernoulli": (Bernoulli(drop=0.5), 1.0, False),
    "renewal": (Renewal(up=1.0, down=9.0), 0.1, True),
    "outage": (Outage(up=1.0, down=3.0, regions=N), 0.25, True),
    "learner": (LearnerOutage(up=1.0, down=9.0), 1.0, False),
    "diurnal": (Diurnal(period=5.0, participation=0.3), 0.3, True),
    "diurnal, all away": (Diurnal(period=5.0, participation=0.1, phase=0.9), 0.0, False),
    "scripted": (Scripted.model_validate({"intervals": SPANS}), 0.75, False),
    "scripted, absent": (Scripted.model_validate({"intervals": SPANS, "spans_are": "absent"}), 0.75, False),
    "leave": (Leave(after=Distribution(exponential=1.0)), 1.0, False),
    "leave at once": (Leave(after=0.0, share=0.25), 0.75, False),
    "join": (Join(after=Distribution(exponential=1.0), share=0.25), 0.75, False),
    "join at once": (Join(after=0.0, share=0.25), 1.0, False),
    "remove": (Remove(by="random", share=0.2), 0.8, False),
    "remove later": (Remove(by="random", share=0.2, at=1.0), 1.0, False),
    "all-of": (AllOf(parts=(Renewal(up=1.0, down=1.0), Diurnal(period=5.0, participation=0.4))), 0.2, True),
}


@pytest.mark.parametrize("every", [10**9, EveryTime(time=0.25)], ids=["by commits", "by time"])
@pytest.mark.parametrize("kind", KINDS)
def test_of_every_availability(kind, every):
    """Five standard errors where agents draw: odds of a false alarm 6e-7 a case, fixed seed; exact otherwise."""
    availability, expected, is_random = KINDS[kind]
    network = Network(
        draw_links(Star(), TopologyInputs(N), learner=True), Poll(interval=0.4), Channel(), availability
    )
    names = [name for name, metric in NETWORK_METRICS.items() if not metric.needs and "lambda2" not in name]
    record = RecordSection.model_validate({"metrics": names, "every": every})
    watch = NetworkWatch(record, network)
    events = simulate_events(network, Streams(5), time=0.6).read()
    recorder = Recorder(every)
    for piece in np.array_split(events, 50):
        watch.feed(piece, joined([]), recorder.read(piece))
    watch.feed(events[:0], joined([]), recorder.finish())
    series = {one.metric: one for one in watch.finish()}
    present = series["present"]
    assert (present.step[0], present.time[0]) == (0, 0.0)
    error = np.sqrt(expected * (1 - expected) / N) if is_random else 0.0
    assert present.value[0] == pytest.approx(expected, abs=5 * error + 1e-12)
    # Nothing else has happened at time 0.
    assert [series[name].value[0] for name in ("messages", "releases", "links_heard")] == [0, 0, 0]
    assert (np.diff(present.time) >= 0).all()
    # The plain reading of the same events looks at the same moments.
    compared = list(
        compare_network(network, events, marks_of_run(every, events, None), tuple(series.values()))
    )
    assert max(one.difference for one in compared) < 1e-12


def test_where_nothing_happens_but_at_time_0():
    network = Network(
        draw_links(Star(), TopologyInputs(4), learner=True), Poll(interval=9.0), Channel(), Remove(share=0.5)
    )
    record = RecordSection.model_validate({"metrics": ["present"]})
    watch = NetworkWatch(record, network)
    recorder = Recorder(1)
    for chunk in simulate_events(network, Streams(0), time=1.0, chunk=1):
        watch.feed(chunk, joined([]), recorder.read(chunk))
    watch.feed(np.empty(0, EVENT), joined([]), recorder.finish(1.0))
    (present,) = watch.finish()
    assert (present.time.tolist(), present.value.tolist()) == ([0.0], [0.5])
