"""Sending: events of sends, and the messages that they put on their way."""

from p2psim.core.compiled import njit
from p2psim.network.compiled_engine.arrays import agents, is_able, messages
from p2psim.network.compiled_engine.calendar import push, take_message, write
from p2psim.network.compiled_engine.codes import (
    BY_COMMITS,
    COMMIT,
    EXHAUSTED,
    LEARNER,
    MAY_END,
    NEIGHBOURS,
    NONE,
    OK,
    RUNNING,
    SEND,
    ZERO,
)
from p2psim.network.compiled_engine.medium import offer
from p2psim.network.compiled_engine.receptions import near, other_end
from p2psim.network.compiled_engine.travel import carry, start_spreading


@njit()
def hand_over(m, radio, place):  # type: ignore[no-untyped-def]
    """Let the channel carry a message, sent at this moment."""
    e = messages(m)[place]
    if radio is not None:
        s = m.state
        if s.longest != 0.0 and (s.question if e.version == NONE else s.loaded) != 0.0:
            offer(m, place)
            return
    if e.receiver == NEIGHBOURS:
        start_spreading(m, place)
    else:
        carry(m, place)


@njit(forceinline=True)
def send(m, sender, receiver, link, version, cause, release, what, query, tries):  # type: ignore[no-untyped-def]
    """Send a message to one receiver; ``query`` and ``tries``: see `learner`."""
    s = m.state
    number = write(m, SEND, sender, receiver, version, cause, release, OK)
    if release != NONE:
        s.in_flight += 1
    hand_over(m, m.radio, _message(m, sender, receiver, link, version, number, release, what, query, tries))
    return number


@njit()
def send_to_all(m, sender, version, cause, release, what):  # type: ignore[no-untyped-def]
    """Send a message to all neighbours; returns the number of the send."""
    s = m.state
    first, last = near(m, sender)
    receiver = other_end(m, sender, first) if last == first + 1 else NEIGHBOURS
    number = write(m, SEND, sender, receiver, version, cause, release, OK)
    if release != NONE:
        s.in_flight += last - first
    hand_over(m, m.radio, _message(m, sender, receiver, first, version, number, release, what, NONE, 0))
    return number


@njit(forceinline=True)
def _message(m, sender, receiver, link, version, number, release, what, query, tries):  # type: ignore[no-untyped-def]
    """Place of a new message."""
    place = take_message(m)
    e = messages(m)[place]
    e.number, e.version, e.query, e.link = number, version, query, link
    e.sender, e.receiver, e.release = sender, receiver, release
    e.tries, e.what, e.lane, e.outcome, e.has_arrived = tries, what, 0, OK, 0
    return place


@njit(forceinline=True)
def settle(m):  # type: ignore[no-untyped-def]
    """End the run if no agent may make a release any more, and none is on its way."""
    s = m.state
    if s.able == 0 and s.in_flight == 0 and s.state == RUNNING:
        s.state = EXHAUSTED


@njit(forceinline=True)
def may_end(m):  # type: ignore[no-untyped-def]
    """Take note that one release is not on its way any more."""
    m.state.in_flight -= 1
    settle(m)


@njit(forceinline=True)
def ended(m, release):  # type: ignore[no-untyped-def]
    """Write down that a release is not on its way any more once all that follows from it has happened."""
    if release != NONE:
        push(m, MAY_END, ZERO, ZERO, ZERO)


@njit(forceinline=True)
def is_spent(m, agent):  # type: ignore[no-untyped-def]
    """Whether an agent may make no more releases."""
    return agents(m)[agent].release >= agents(m)[agent].limit


@njit(forceinline=True)
def make_release(m, agent):  # type: ignore[no-untyped-def]
    """Number of the release that an agent makes now; `NONE` if it may make no more."""
    a, s = agents(m)[agent], m.state
    number = a.release
    if number >= a.limit and s.goes_on:
        return NONE
    a.release = number + 1
    if number + 1 == a.limit and not s.goes_on:
        deactivate(m, agent)
    return number


@njit(forceinline=True)
def deactivate(m, agent):  # type: ignore[no-untyped-def]
    """Take note that an agent makes no release any more."""
    if is_able(m)[agent]:
        is_able(m)[agent] = 0
        m.state.able -= 1


@njit(forceinline=True)
def commit(m, agent, peer, cause, release):  # type: ignore[no-untyped-def]
    """Write an update of an agent's model, and end the run if it was the last."""
    s, a = m.state, agents(m)[agent]
    a.version += 1
    s.commits += 1
    write(m, COMMIT, agent, peer, a.version, cause, release, OK)
    if s.commits == s.last:
        s.state = BY_COMMITS


@njit(forceinline=True)
def commit_of_learner(m, peer, cause, release):  # type: ignore[no-untyped-def]
    """Write an update of the learner's model, and end the run if it was the last."""
    s = m.state
    s.commits += 1
    write(m, COMMIT, LEARNER, peer, s.commits, cause, release, OK)
    if s.commits == s.last:
        s.state = BY_COMMITS
