"""What agents do of their own accord: send, release, commit, turn to neighbours, and hold rounds.

See `p2psim.network.exchanges.gossip`, `poll` and `rounds`; steps are in the order in which they are written there.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.times import is_past, until
from p2psim.network.compiled_engine.calendar import (
    agents,
    appoint,
    indices,
    is_able,
    messages,
    present,
    push,
    take_message,
    timer,
    write,
)
from p2psim.network.compiled_engine.links import draw_partner, is_alone, is_there, way_back
from p2psim.network.compiled_engine.medium import offer
from p2psim.network.compiled_engine.receptions import link_at, near, other_end
from p2psim.network.compiled_engine.state import (
    ALONE,
    ANSWER,
    ASKED,
    BROADCAST,
    BY_COMMITS,
    CLOSE,
    COMMIT,
    DEADLINE,
    EDGE,
    EXHAUSTED,
    HEAR,
    JOIN_BACK,
    LEARNER,
    MAY_END,
    NEIGHBOURS,
    NOBODY,
    NONE,
    NOTHING,
    OK,
    POLL,
    POLLS,
    PULL,
    PUSH,
    PUSH_PULL,
    REGULAR,
    ROUND,
    RUNNING,
    SEND,
    SPENT,
    SWAP,
    UPDATE,
    UPDATES,
    WAKE,
    ZERO,
)
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
    link = link_at(m, first)
    receiver = other_end(m, sender, link) if last == first + 1 else NEIGHBOURS
    number = write(m, SEND, sender, receiver, version, cause, release, OK)
    if release != NONE:
        s.in_flight += last - first
    hand_over(m, m.radio, _message(m, sender, receiver, link, version, number, release, what, NONE, 0))
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


@njit()
def wake_up(m, agent):  # type: ignore[no-untyped-def]
    """An agent's clock ticked."""
    s, a = m.state, agents(m)[agent]
    tells = s.pattern == PUSH and s.hears
    if not tells and not s.goes_on and is_spent(m, agent):
        write(m, WAKE, agent, NOBODY, NONE, NONE, NONE, SPENT)
        return
    if is_alone(m, m.changing, agent):
        write(m, WAKE, agent, NOBODY, NONE, NONE, NONE, ALONE)
        return
    wake = write(m, WAKE, agent, NOBODY, NONE, NONE, NONE, OK)
    cause, version, release = wake, a.version, NONE
    if s.pattern == BROADCAST or (s.pattern == PUSH and not s.hears):
        release = make_release(m, agent)
        cause, version = s.seq, version + 1
        commit(m, agent, NOBODY, wake, release)
        if s.state != RUNNING:
            return
        if s.pattern == BROADCAST:
            send_to_all(m, agent, version, cause, release, NOTHING)
            return
    elif s.pattern == EDGE:
        release = make_release(m, agent)
    elif s.pattern == PULL:
        version = NONE
    what = NOTHING
    if s.pattern == PULL:
        what = ANSWER
    elif s.pattern == PUSH_PULL:
        what = SWAP
    elif s.pattern == EDGE:
        what = JOIN_BACK
    elif s.hears:
        what = UPDATE
    link = draw_partner(m, m.changing, agent, a.begun)
    a.begun += 1
    send(m, agent, np.int64(indices(m)[link]), link, version, cause, release, what, NONE, 0)


@njit()
def hear_neighbour(m, place, delivery):  # type: ignore[no-untyped-def]
    """An agent has heard a neighbour; ``delivery`` is the number of that event."""
    s, e = m.state, messages(m)[place]
    sender, agent, link, what = e.sender, e.receiver, e.link, e.what
    ended(m, e.release)
    link = way_back(m, m.changing, agent, sender, link)
    if not is_there(m, m.changing, link):
        # The link has gone: no answer.
        if what == SWAP:
            what = UPDATE
        elif what == ANSWER or what == JOIN_BACK:  # noqa: SIM109
            return
    if what == UPDATE:
        update(m, agent, sender, delivery)
    elif what == CLOSE:
        commit(m, agent, sender, delivery, NONE)
    elif what == ANSWER:
        send(m, agent, sender, link, agents(m)[agent].version, delivery, NONE, UPDATE, NONE, ZERO)
    elif what == SWAP:
        push(m, UPDATES, delivery, agent, sender)
        send(m, agent, sender, link, agents(m)[agent].version, delivery, NONE, UPDATE, NONE, ZERO)
    elif what == JOIN_BACK and (s.goes_on or not is_spent(m, agent)):
        release = make_release(m, agent)
        send(m, agent, sender, link, agents(m)[agent].version, delivery, release, CLOSE, NONE, ZERO)


@njit()
def update(m, agent, peer, delivery):  # type: ignore[no-untyped-def]
    """Commit with a model that was heard, if the agent may make an update."""
    s = m.state
    if not s.goes_on and is_spent(m, agent):
        return
    commit(m, agent, peer, delivery, make_release(m, agent))
    if s.state == RUNNING:
        settle(m)


@njit(forceinline=True)
def learner_is_present(m):  # type: ignore[no-untyped-def]
    """Whether the learner is online."""
    return present(m)[m.state.n] != 0


@njit()
def ask_all(m):  # type: ignore[no-untyped-def]
    """Send a query to all owners."""
    s = m.state
    s.query = s.seq
    send_to_all(m, LEARNER, s.commits, NONE, NONE, HEAR)


@njit()
def poll(m, number):  # type: ignore[no-untyped-def]
    """The learner asks everyone at a multiple of the interval; appoints the next."""
    appoint_poll(m, number + 1)
    if learner_is_present(m):
        ask_all(m)


@njit()
def appoint_poll(m, number):  # type: ignore[no-untyped-def]
    """Appoint a poll, by its number."""
    s = m.state
    place = timer(m, LEARNER, number, NONE)
    appoint(m, max(until(number * s.interval, s.end), s.now), place, REGULAR, POLL, number, 0)


@njit()
def end_answer(m, version):  # type: ignore[no-untyped-def]
    """Take note that an answer is no longer waited for; the last of a round closes it."""
    s = m.state
    if s.pattern != POLLS and version == s.commits:
        s.left -= 1
        if s.left == 0:
            close_round(m, version, False)


@njit()
def close_round(m, version, is_late):  # type: ignore[no-untyped-def]
    """Close a round, at its deadline perhaps."""
    s = m.state
    if version != s.commits or not s.is_open:
        return
    if not learner_is_present(m):
        s.is_due = 1
        return
    commit_of_learner(m, NEIGHBOURS, s.query, NONE)
    if s.state == RUNNING:
        s.is_open = 0
        appoint_round(m, is_late)
        may_end(m)


@njit()
def _begins(m, whole, late):  # type: ignore[no-untyped-def]
    """As in `p2psim.network.exchanges.rounds.RoundTimes`."""
    s = m.state
    return s.since + (whole * s.interval + late * s.deadline)


@njit()
def appoint_round(m, is_late):  # type: ignore[no-untyped-def]
    """Appoint the next round, if the last one closed now; ``is_late``: by its deadline."""
    s = m.state
    if is_late and s.deadline > s.interval:
        s.late += 1
    else:
        s.whole += 1
    begins = _begins(m, s.whole, s.late)
    if is_past(s.now, begins):
        s.since, s.whole, s.late = s.now, 0, 0
        begins = s.now
    s.rounds += 1
    place = timer(m, LEARNER, s.rounds, NONE)
    appoint(m, until(max(begins, s.now), s.end), place, REGULAR, ROUND, s.rounds, 0)


@njit()
def begin_round(m):  # type: ignore[no-untyped-def]
    """Ask all owners, and wait; a learner that is away lets the round pass."""
    s = m.state
    if not learner_is_present(m):
        appoint_round(m, False)
        return
    # One more than there are owners, so that it cannot close before everybody was asked.
    s.left, s.is_due, s.is_open = s.n + 1, 0, 1
    # Whatever has been answered is still to be used.
    s.in_flight += 1
    push(m, ASKED, s.commits, ZERO, ZERO)
    ask_all(m)


@njit()
def wait_for_round(m, version):  # type: ignore[no-untyped-def]
    """Everybody was asked: wait for the answers, until the deadline at most."""
    s = m.state
    end_answer(m, version)
    if s.deadline > 0 and s.is_open and s.state == RUNNING:
        place = timer(m, LEARNER, s.rounds, version)
        is_next = s.deadline == s.interval
        time = _begins(m, s.whole + 1, s.late) if is_next else _begins(m, s.whole, s.late + 1)
        appoint(m, max(until(time, s.end), s.now), place, REGULAR, DEADLINE, s.rounds, 0)


@njit()
def return_to_round(m, agent):  # type: ignore[no-untyped-def]
    """A learner that comes back closes the round that was due to close."""
    s = m.state
    if agent == LEARNER and s.is_due:
        s.is_due = 0
        close_round(m, s.commits, False)
