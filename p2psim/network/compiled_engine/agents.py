"""What agents do of their own accord: send, release, commit, turn to neighbours, and compute.

See `p2psim.network.exchanges.gossip`; steps are in the order in which they are written there.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.links import draw_partner, is_alone, is_there, way_back
from p2psim.network.compiled_engine.medium import offer
from p2psim.network.compiled_engine.receptions import link_at, near, other_end
from p2psim.network.compiled_engine.travel import carry, start_spreading
from p2psim.network.compiled_engine.work import begin_work, drop_waiting, is_computing, let_wait, stop_work


@njit()
def hand_over(m, radio, place):  # type: ignore[no-untyped-def]
    """Let the channel carry a message, sent at this moment."""
    e = cal.messages(m)[place]
    if radio is not None:
        s = m.state
        if s.longest != 0.0 and (s.question if e.version == st.NONE else s.loaded) != 0.0:
            offer(m, place)
            return
    if e.receiver == st.NEIGHBOURS:
        start_spreading(m, place)
    else:
        carry(m, place)


@njit(forceinline=True)
def send(m, sender, receiver, link, version, cause, release, what, query, tries):  # type: ignore[no-untyped-def]
    """Send a message to one receiver; ``query`` and ``tries``: see `learner`."""
    s = m.state
    number = cal.write(m, st.SEND, sender, receiver, version, cause, release, st.OK)
    if release != st.NONE:
        s.in_flight += 1
    hand_over(m, m.radio, _message(m, sender, receiver, link, version, number, release, what, query, tries))
    return number


@njit()
def send_to_all(m, sender, version, cause, release, what, query):  # type: ignore[no-untyped-def]
    """Send a message to all neighbours, of round ``query`` where there are rounds; returns the number of the send."""
    s = m.state
    first, last = near(m, sender)
    link = link_at(m, first)
    receiver = other_end(m, sender, link) if last == first + 1 else st.NEIGHBOURS
    number = cal.write(m, st.SEND, sender, receiver, version, cause, release, st.OK)
    if release != st.NONE:
        s.in_flight += last - first
    hand_over(m, m.radio, _message(m, sender, receiver, link, version, number, release, what, query, 0))
    return number


@njit(forceinline=True)
def _message(m, sender, receiver, link, version, number, release, what, query, tries):  # type: ignore[no-untyped-def]
    """Place of a new message."""
    place = cal.take_message(m)
    e = cal.messages(m)[place]
    e.number, e.version, e.query, e.link = number, version, query, link
    e.sender, e.receiver, e.release = sender, receiver, release
    e.tries, e.what, e.lane, e.outcome, e.has_arrived = tries, what, 0, st.OK, 0
    return place


@njit(forceinline=True)
def settle(m):  # type: ignore[no-untyped-def]
    """End the run if no agent may make a release any more, and none is on its way."""
    s = m.state
    if s.able == 0 and s.in_flight == 0 and s.state == st.RUNNING:
        s.state = st.EXHAUSTED


@njit(forceinline=True)
def may_end(m):  # type: ignore[no-untyped-def]
    """Take note that one release is not on its way any more."""
    m.state.in_flight -= 1
    settle(m)


@njit(forceinline=True)
def ended(m, release):  # type: ignore[no-untyped-def]
    """Write down that a release is not on its way any more once all that follows from it has happened."""
    if release != st.NONE:
        cal.push(m, st.MAY_END, st.ZERO, st.ZERO, st.ZERO)


@njit(forceinline=True)
def is_spent(m, agent):  # type: ignore[no-untyped-def]
    """Whether an agent may make no more releases."""
    return cal.agents(m)[agent].release >= cal.agents(m)[agent].limit


@njit(forceinline=True)
def make_release(m, agent):  # type: ignore[no-untyped-def]
    """Number of the release that an agent makes now; `NONE` if it may make no more."""
    a, s = cal.agents(m)[agent], m.state
    number = a.release
    if number >= a.limit and s.goes_on:
        return st.NONE
    a.release = number + 1
    if number + 1 == a.limit and not s.goes_on:
        deactivate(m, agent)
    return number


@njit(forceinline=True)
def deactivate(m, agent):  # type: ignore[no-untyped-def]
    """Take note that an agent makes no release any more."""
    if cal.is_able(m)[agent]:
        cal.is_able(m)[agent] = 0
        m.state.able -= 1


@njit(forceinline=True)
def commit(m, agent, peer, cause, release):  # type: ignore[no-untyped-def]
    """Write an update of an agent's model, and end the run if it was the last."""
    s, a = m.state, cal.agents(m)[agent]
    a.version += 1
    s.commits += 1
    cal.write(m, st.COMMIT, agent, peer, a.version, cause, release, st.OK)
    if s.commits == s.last:
        s.state = st.BY_COMMITS


@njit(forceinline=True)
def commit_of_learner(m, peer, cause, release):  # type: ignore[no-untyped-def]
    """Write an update of the learner's model, and end the run if it was the last."""
    s = m.state
    s.commits += 1
    cal.write(m, st.COMMIT, st.LEARNER, peer, s.commits, cause, release, st.OK)
    if s.commits == s.last:
        s.state = st.BY_COMMITS


@njit(forceinline=True)
def _updates_on_waking(m):  # type: ignore[no-untyped-def]
    """Whether agents update their models when they wake."""
    s = m.state
    return s.pattern == st.BROADCAST or (s.pattern == st.PUSH and not s.hears)


@njit(forceinline=True)
def _works_first(m):  # type: ignore[no-untyped-def]
    """Whether in push-pull agents compute before they send."""
    s = m.state
    return s.pattern == st.PUSH_PULL and s.one_sided and not s.hears


@njit(forceinline=True)
def _only_answers(m, agent):  # type: ignore[no-untyped-def]
    """Whether an agent is of the side that does not ask, where an agent that waits answers no other."""
    return m.state.blocking != 0 and cal.asks(m)[agent] == 0


@njit()
def wake_up(m, compute, agent):  # type: ignore[no-untyped-def]
    """An agent's clock ticked."""
    s = m.state
    tells = s.pattern == st.PUSH and s.hears
    if not tells and not s.goes_on and is_spent(m, agent):
        cal.write(m, st.WAKE, agent, st.NOBODY, st.NONE, st.NONE, st.NONE, st.SPENT)
        return
    is_busy = s.blocking != 0 and cal.asked(m)[agent] != 0
    if compute is not None and s.computes and not tells:
        is_busy = is_busy or is_computing(m, agent)
    if is_busy:
        cal.write(m, st.WAKE, agent, st.NOBODY, st.NONE, st.NONE, st.NONE, st.BUSY)
        return
    if is_alone(m, m.changing, agent) and not _only_answers(m, agent):
        cal.write(m, st.WAKE, agent, st.NOBODY, st.NONE, st.NONE, st.NONE, st.ALONE)
        return
    wake = cal.write(m, st.WAKE, agent, st.NOBODY, st.NONE, st.NONE, st.NONE, st.OK)
    works_first = s.pattern == st.EDGE or _updates_on_waking(m) or _works_first(m) or _only_answers(m, agent)
    if compute is not None and s.computes and works_first:
        begin_work(m, agent, cal.agents(m)[agent].version, wake, st.NOTHING, st.NOBODY, st.NONE)
    else:
        act(m, agent, wake)


@njit()
def act(m, agent, cause):  # type: ignore[no-untyped-def]
    """Do what an agent has woken for, because of its wake, or of what it has computed."""
    s, a = m.state, cal.agents(m)[agent]
    if _only_answers(m, agent):
        _commit_heard(m, agent, st.NOBODY, cause)
        return
    version, release = a.version, st.NONE
    if _updates_on_waking(m):
        release = make_release(m, agent)
        commit(m, agent, st.NOBODY, cause, release)
        cause, version = s.seq - 1, version + 1
        if s.state != st.RUNNING or is_alone(m, m.changing, agent):
            return
        if s.pattern == st.BROADCAST:
            send_to_all(m, agent, version, cause, release, st.NOTHING, st.NONE)
            return
    elif s.pattern == st.EDGE:
        release = make_release(m, agent)
    elif s.pattern == st.PULL:
        version = st.NONE
    what = st.NOTHING
    if s.pattern == st.PULL:
        what = st.ANSWER
    elif s.pattern == st.PUSH_PULL:
        what = st.SWAP
        if s.blocking:
            cal.asked(m)[agent] = 1
    elif s.pattern == st.EDGE:
        what = st.JOIN_BACK
    elif s.hears:
        what = st.UPDATE
    link = draw_partner(m, m.changing, agent, a.begun)
    a.begun += 1
    send(m, agent, np.int64(cal.indices(m)[link]), link, version, cause, release, what, st.NONE, 0)


@njit()
def hear_neighbour(m, compute, place, delivery):  # type: ignore[no-untyped-def]
    """An agent has heard a neighbour; ``delivery`` is the number of that event."""
    s, e = m.state, cal.messages(m)[place]
    sender, agent, link, what = e.sender, e.receiver, e.link, e.what
    ended(m, e.release)
    link = way_back(m, m.changing, agent, sender, link)
    # Where the link has gone there is no answer.
    answers = is_there(m, m.changing, link)
    if s.blocking and what == st.UPDATE:
        cal.asked(m)[agent] = 0
    elif s.blocking and not answers:
        cal.asked(m)[sender] = 0
    if not answers and (what == st.ANSWER or what == st.JOIN_BACK):
        return
    version = cal.agents(m)[agent].version
    if what == st.UPDATE:
        update(m, compute, agent, sender, delivery)
    elif what == st.CLOSE:
        commit(m, agent, sender, delivery, st.NONE)
    elif what == st.ANSWER:
        send(m, agent, sender, link, version, delivery, st.NONE, st.UPDATE, st.NONE, st.ZERO)
    elif what == st.SWAP:
        if s.one_sided:
            # The other's release may be the last one: this update still belongs to it.
            s.in_flight += 1
            cal.push(m, st.MAY_END, st.ZERO, st.ZERO, st.ZERO)
            cal.push(m, st.AVERAGES, delivery, agent, sender)
        else:
            cal.push(m, st.UPDATES, delivery, agent, sender)
        if answers:
            send(m, agent, sender, link, version, delivery, st.NONE, st.UPDATE, st.NONE, st.ZERO)
    elif what == st.JOIN_BACK and (s.goes_on or not is_spent(m, agent)):
        if compute is not None and s.computes:
            compute_with(m, agent, delivery, st.JOIN_BACK, sender, link)
        else:
            _join_back(m, agent, sender, link, delivery)


@njit()
def update(m, compute, agent, peer, delivery):  # type: ignore[no-untyped-def]
    """Update with a model that was heard, if the agent may."""
    s = m.state
    if not s.goes_on and is_spent(m, agent):
        return
    if compute is not None and s.computes and not _works_first(m):
        compute_with(m, agent, delivery, st.UPDATE, peer, st.NONE)
    else:
        _commit_heard(m, agent, peer, delivery)


@njit()
def _commit_heard(m, agent, peer, cause):  # type: ignore[no-untyped-def]
    """Commit with a model that was heard."""
    commit(m, agent, peer, cause, make_release(m, agent))
    if m.state.state == st.RUNNING:
        settle(m)


@njit()
def _join_back(m, agent, sender, link, cause):  # type: ignore[no-untyped-def]
    """Send local steps back to the end of a link that has woken."""
    release = make_release(m, agent)
    send(m, agent, sender, link, cal.agents(m)[agent].version, cause, release, st.CLOSE, st.NONE, st.ZERO)


# Time to compute


@njit()
def compute_with(m, agent, delivery, what, peer, link):  # type: ignore[no-untyped-def]
    """Compute with a model that was heard, or let it wait; it takes the place of one that waits."""
    if is_computing(m, agent) or cal.workers(m)[agent].waiting != st.NONE:
        drop_waiting(m, agent, st.SUPERSEDED)
        let_wait(m, agent, delivery, peer, link)
    else:
        begin_work(m, agent, cal.agents(m)[agent].version, delivery, what, peer, link)


@njit()
def end_work(m, agent):  # type: ignore[no-untyped-def]
    """An agent has computed: let follow what follows, and then begin with the model that waits."""
    what, peer, link = cal.workers(m)[agent].what, cal.workers(m)[agent].peer, cal.workers(m)[agent].link
    version, begin = cal.workers(m)[agent].version, stop_work(m, agent)
    cal.push(m, st.NEXT_WORK, agent, st.ZERO, st.ZERO)
    if what == st.UPDATE:
        _commit_heard(m, agent, peer, begin)
    elif _needs_link(m, agent) and _has_no_link(m, m.changing, agent, what, link):
        cal.write(m, st.DROP, agent, st.NOBODY, version, begin, st.NONE, st.ALONE)
    elif what == st.JOIN_BACK:
        _join_back(m, agent, peer, link, begin)
    else:
        act(m, agent, begin)


@njit(forceinline=True)
def _needs_link(m, agent):  # type: ignore[no-untyped-def]
    """Whether what an agent has computed is sent before anything is committed."""
    return m.state.pattern == st.EDGE or (_works_first(m) and not _only_answers(m, agent))


@njit(forceinline=True)
def _has_no_link(m, changing, agent, what, link):  # type: ignore[no-untyped-def]
    """Whether the links are gone over which local steps were to be sent."""
    if what == st.JOIN_BACK:
        return not is_there(m, changing, link)
    return is_alone(m, changing, agent)


@njit()
def next_work(m, agent):  # type: ignore[no-untyped-def]
    """Begin with the model that waits, if there is one."""
    s, w = m.state, cal.workers(m)[agent]
    if w.waiting == st.NONE:
        return
    if not s.goes_on and is_spent(m, agent):
        drop_waiting(m, agent, st.SPENT)
    elif not is_computing(m, agent):
        delivery = w.waiting
        w.waiting = st.NONE
        what = st.JOIN_BACK if s.pattern == st.EDGE else st.UPDATE
        begin_work(m, agent, cal.agents(m)[agent].version, delivery, what, w.waiting_peer, w.waiting_link)


@njit()
def cancel_work(m, agent):  # type: ignore[no-untyped-def]
    """Drop the work of an agent that has left, and the model that waits."""
    version = cal.workers(m)[agent].version
    cal.write(m, st.DROP, agent, st.NOBODY, version, stop_work(m, agent), st.NONE, st.OFFLINE)
    drop_waiting(m, agent, st.OFFLINE)
