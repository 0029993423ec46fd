"""Each draw has its address: changing one thing of a network moves no draw of another."""

import numpy as np
import pytest
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    SEND,
    WAKE,
    Broadcast,
    Channel,
    Gossip,
    Network,
    Poll,
    Request,
    Round,
    complete,
    of_kind,
    play,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.events import COLLISION
from p2psim.core.randomness import Streams
from p2psim.network.channels.channel import ResendSame
from p2psim.network.channels.draws import BLOCK, Drawing
from p2psim.network.channels.effects import GilbertElliott
from p2psim.network.simulation import simulate_events

LATE = Distribution(exponential=0.3)


def wake_times(events: np.ndarray, agent: int) -> list[float]:
    wakes = of_kind(events, WAKE)
    return wakes["time"][wakes["agent"] == agent].tolist()


#: What is drawn beside a purpose wherever it is.
PARTNERS = {"link-state": {"loss"}, "retransmit": {"loss"}, "acknowledgement": {"retransmit"}}
AIR = Channel(airtime=0.02, while_sending="overlap")


class TestSeeds:
    @pytest.mark.parametrize("engine", ["simpy", "array"])
    def test_seven_seeds_give_seven_schedules(self, engine: str) -> None:
        made = {
            play(star(3), Request(), seed=seed, engine=engine, commits=20)[0].tobytes() for seed in range(7)
        }
        assert len(made) == 7

    @pytest.mark.parametrize("engine", ["simpy", "array"])
    def test_a_seed_gives_the_same_bytes_again(self, engine: str) -> None:
        made = {play(ring(5), Gossip(), seed=3, engine=engine, commits=200)[0].tobytes() for _ in range(3)}
        assert len(made) == 1

    def test_replicas_and_variants_differ(self) -> None:
        network = Network(star(3), Request())
        streams = [
            Streams(0, 0),
            Streams(0, 1),
            Streams(1, 0),
            Streams(0, 0, {"clocks": "a"}),
            Streams(0, 0, {"clocks": "b"}),
        ]
        made = {simulate_events(network, one, commits=20).read().tobytes() for one in streams}
        assert len(made) == len(streams)

    @pytest.mark.parametrize(
        ("purpose", "network"),
        [
            ("clocks", Network(star(3), Request())),
            ("peers", Network(ring(5), Gossip())),
            ("latency", Network(star(3), Poll(), Channel(latency=LATE))),
            ("loss", Network(star(3), Poll(), Channel(loss=0.5))),
            ("response", Network(star(3), Poll(response=LATE))),
            ("response", Network(star(3), Round(response=LATE))),
            ("service", Network(star(3), Request(service=LATE))),
            ("link-state", Network(star(3), Poll(), Channel(loss=GilbertElliott(mean=0.5, burst=1.0)))),
            (
                "capture",
                Network(star(3), Poll(), AIR.model_copy(update={"collision": "aloha", "capture": 0.5})),
            ),
            ("backoff", Network(star(3), Poll(), AIR.model_copy(update={"collision": "carrier-sense"}))),
            ("retransmit", Network(star(3), Poll(), Channel(loss=0.5, retransmit=ResendSame(backoff=LATE)))),
            ("acknowledgement", Network(star(3), Poll(), Channel(retransmit=ResendSame(acknowledge=0.5)))),
        ],
    )
    def test_each_purpose_is_drawn_from_its_stream(self, purpose: str, network: Network) -> None:
        """Another variant of the purpose changes the events; another variant of all others does not."""
        used = {"clocks", purpose} if network.exchange.has_clocks else {purpose}
        unused = (
            {
                "peers",
                "latency",
                "loss",
                "response",
                "service",
                "availability",
                "data",
                "noise",
                "clocks",
                "link-state",
                "capture",
                "backoff",
                "retransmit",
                "acknowledgement",
            }
            - used
            - PARTNERS.get(purpose, set())
        )
        plain, other, same = (
            simulate_events(network, Streams(0, 0, variants), commits=60).read().tobytes()
            for variants in ({}, {purpose: "x"}, dict.fromkeys(unused, "x"))
        )
        assert plain != other
        assert plain == same


class TestClocksStandAlone:
    def test_channel_moves_no_clock(self) -> None:
        channels = [Channel(), Channel(loss=0.4), Channel(latency=LATE), Channel(latency=LATE, loss=0.4)]
        made = [play(complete(4), Broadcast(), channel, time=30.0)[0] for channel in channels]
        for agent in range(4):
            assert len({tuple(wake_times(events, agent)) for events in made}) == 1

    def test_exchange_and_service_move_no_clock(self) -> None:
        made = [
            play(star(4), Request(service=service, busy=busy), time=30.0)[0]  # type: ignore[arg-type]
            for service in (0.0, 0.5, LATE)
            for busy in ("refuse", "queue")
        ]
        made += [play(complete(4), exchange, time=30.0)[0] for exchange in (Broadcast(), Gossip())]
        for agent in range(4):
            assert len({tuple(wake_times(events, agent)) for events in made}) == 1

    def test_limits_move_no_clock(self) -> None:
        free, _ = play(ring(4), Gossip(), time=30.0)
        bound, _ = play(ring(4), Gossip(), time=30.0, limits=np.array([1, 100, 2, 100]))
        for agent in range(4):
            assert wake_times(free, agent) == wake_times(bound, agent)

    @pytest.mark.parametrize("engine", ["simpy", "array"])
    def test_another_agent_moves_no_clock(self, engine: str) -> None:
        few, _ = play(star(3), Request(), time=30.0, engine=engine)
        many, _ = play(star(20), Request(), time=30.0, engine=engine)
        for agent in range(3):
            assert wake_times(few, agent) == wake_times(many, agent)

    @pytest.mark.parametrize("engine", ["simpy", "array"])
    def test_a_rate_scales_its_own_clock_and_no_other(self, engine: str) -> None:
        slow, _ = play(star(3), Request(), time=30.0, engine=engine)
        fast, _ = play(star(3), Request(), rates=np.array([1.0, 2.0, 1.0]), time=30.0, engine=engine)
        assert wake_times(slow, 0) == wake_times(fast, 0)
        assert wake_times(slow, 2) == wake_times(fast, 2)
        doubled = np.array(wake_times(fast, 1)) * 2
        same = wake_times(slow, 1)
        np.testing.assert_allclose(doubled[: len(same)], same, rtol=1e-12)


class TestChannelDraws:
    def message_ends(self, events: np.ndarray) -> dict[tuple[int, ...], tuple[float, int]]:
        """Of each message that ended: (sender, its version, receiver) to its delay and fate."""
        ends = events[np.isin(events["kind"], [DELIVER, DROP])]
        delays = ends["time"] - events["time"][ends["cause"]]
        names = zip(*(ends[name].tolist() for name in ("peer", "version", "agent")), strict=True)
        return dict(
            zip(names, zip(np.round(delays, 9).tolist(), ends["kind"].tolist(), strict=True), strict=True)
        )

    def test_loss_moves_no_latency(self) -> None:
        made = [
            self.message_ends(play(complete(4), Broadcast(), Channel(latency=LATE, loss=loss), time=40.0)[0])
            for loss in (0.0, 0.5)
        ]
        assert made[0].keys() == made[1].keys()
        assert all(made[0][name][0] == made[1][name][0] for name in made[0])
        assert {fate for _, fate in made[1].values()} == {DELIVER, DROP}

    def test_latency_moves_no_loss(self) -> None:
        made = [
            self.message_ends(
                play(complete(4), Broadcast(), Channel(latency=latency, loss=0.5), time=40.0)[0]
            )
            for latency in (0.0, LATE)
        ]
        both = made[0].keys() & made[1].keys()
        assert len(both) > 100
        assert all(made[0][name][1] == made[1][name][1] for name in both)

    def test_more_loss_loses_what_less_loss_does(self) -> None:
        """Common random numbers: the messages lost at 20 % are among those lost at 50 %."""
        lost = []
        for loss in (0.2, 0.5):
            ends = self.message_ends(play(complete(4), Broadcast(), Channel(loss=loss), time=40.0)[0])
            lost.append({name for name, (_, fate) in ends.items() if fate == DROP})
        assert lost[0] < lost[1]

    def test_one_sender_moves_no_other(self) -> None:
        """Agent 0 falls silent; what the others send fares as before."""
        channel = Channel(latency=LATE, loss=0.3)
        free = self.message_ends(play(complete(4), Broadcast(), channel, time=40.0)[0])
        bound = self.message_ends(
            play(complete(4), Broadcast(), channel, time=40.0, limits=np.array([1, 500, 500, 500]))[0]
        )
        others = {name: end for name, end in free.items() if name[0] != 0}
        assert others == {name: end for name, end in bound.items() if name[0] != 0}
        assert len(free) > len(bound)

    def test_one_owner_moves_no_other_response(self) -> None:
        few, _ = play(star(2), Poll(response=LATE), time=40.0)
        many, _ = play(star(5), Poll(response=LATE), time=40.0)
        for owner in range(2):
            times = []
            for events in (few, many):
                answers = events[(events["kind"] == SEND) & (events["agent"] == owner)]
                times.append(answers["time"].tolist())
            assert times[0] == times[1]

    def test_fewer_commits_are_a_prefix(self) -> None:
        channel = Channel(latency=LATE, loss=0.3)
        shorter, _ = play(star(4), Request(service=LATE), channel, commits=50)
        longer, _ = play(star(4), Request(service=LATE), channel, commits=100)
        assert longer[: shorter.size].tobytes() == shorter.tobytes()
        assert np.sum(shorter["kind"] == COMMIT) == 50
        assert LEARNER in shorter["agent"]

    @pytest.mark.parametrize("radio", ["aloha", "slotted", "carrier-sense"])
    @pytest.mark.parametrize("while_sending", ["wait", "overlap"])
    def test_collisions_move_no_delay_nor_loss(self, radio: str, while_sending: str) -> None:
        """What is heard travels and is lost as on a channel without collisions; all is told apart by its send."""
        quiet = Channel(airtime=0.02, latency=LATE, loss=0.3)
        plain, _ = play(complete(4), Broadcast(), quiet, time=40.0)
        keys = {"collision": radio, "while_sending": while_sending, "shared": True}
        noisy, _ = play(complete(4), Broadcast(), quiet.model_copy(update=keys), time=40.0)
        collided = noisy["outcome"] == COLLISION
        assert collided.any() or radio == "carrier-sense"
        fates = [
            {
                (int(end["peer"]), int(end["version"]), int(end["agent"])): end["kind"] == DROP
                for end in events[np.isin(events["kind"], [DELIVER, DROP])]
            }
            for events in (plain, noisy[~collided])
        ]
        shared = fates[0].keys() & fates[1].keys()
        assert len(shared) > 200
        assert all(fates[0][message] == fates[1][message] for message in shared)


class TestManyDraws:
    @pytest.mark.parametrize("quantity", [LATE, Distribution(uniform=(0.0, 2.0))])
    def test_go_on_where_the_first_ones_ended(self, quantity: Distribution) -> None:
        """The draws of agents that take turns are those of NumPy's generators, each asked once for all of its own."""
        drawing = Drawing(Streams(2))
        draws = [drawing.draws("backoff", agent, quantity, lane) for agent in range(5) for lane in (0, 1)]
        found = np.array([[next(one) for one in draws] for _ in range(3 * BLOCK)]).T
        expected = [
            quantity.sample(Streams(2).generator("backoff", agent, lane), 3 * BLOCK)
            for agent in range(5)
            for lane in (0, 1)
        ]
        assert (found == np.array(expected)).all()
