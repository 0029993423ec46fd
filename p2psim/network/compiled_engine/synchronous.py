"""Rounds of agents.

See `p2psim.network.exchanges.synchronous`. What takes many steps is a task that goes on to the next agent,
so that all that follows from one agent's step has happened before the next agent's. Where no message takes time a round
ends at the moment at which it begins, and `fill` writes it as a whole.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import uniform
from p2psim.core.times import until
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.agents import (
    commit,
    is_spent,
    make_release,
    may_end,
    send_to_all,
)
from p2psim.network.compiled_engine.ideal import ABLE, SEQ, STATE, end_message, put
from p2psim.network.compiled_engine.ideal import commit as commit_ideally
from p2psim.network.compiled_engine.ideal import make_release as make_an_ideal_release
from p2psim.network.compiled_engine.learner import misses
from p2psim.network.compiled_engine.receptions import near
from p2psim.network.compiled_engine.rounds import appoint_round, begins
from p2psim.network.compiled_engine.work import begin_work, is_computing, stop_work


@njit()
def begin_agents_round(m):  # type: ignore[no-untyped-def]
    """Let all agents wake that are there, one after the other."""
    s = m.state
    # One more than is waited for, so that it cannot close before everybody has woken.
    s.left, s.is_open, s.is_due = 1, 1, 0
    # Whatever has been sent is still to be used.
    s.in_flight += 1
    cal.push(m, st.WAKING, st.ZERO, st.ZERO, st.ZERO)


@njit()
def wake_next(m, compute):  # type: ignore[no-untyped-def]
    """Let the next agent take part; after the last one, wait for messages and work, until the deadline at most."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    agent = task.link
    if agent == s.n:
        s.depth -= 1
        end_in_round(m, s.rounds)
        if s.deadline > 0 and s.is_open:
            _appoint_deadline(m)
        return
    task.link = agent + 1
    cal.wakes(m)[agent] = st.NONE
    cal.asked(m)[agent] = 0
    is_missed = misses(m, agent)
    cal.agents(m)[agent].ticks += 1
    if is_missed or not cal.present(m)[agent]:
        return
    if not s.goes_on and is_spent(m, agent):
        cal.write(m, st.WAKE, agent, st.NOBODY, st.NONE, st.NONE, st.NONE, st.SPENT)
        return
    wake = cal.write(m, st.WAKE, agent, st.NOBODY, st.NONE, st.NONE, st.NONE, st.OK)
    cal.wakes(m)[agent] = wake
    if compute is not None and s.computes and not s.hears:
        s.left += 1
        begin_work(m, agent, cal.agents(m)[agent].version, wake, st.NOTHING, st.NOBODY, st.NONE)
    else:
        _send_in_round(m, agent, wake)


@njit()
def _send_in_round(m, agent, cause):  # type: ignore[no-untyped-def]
    """Send an agent's model, if it has neighbours now."""
    s, (first, last) = m.state, near(m, agent)
    if first == last:
        return
    release = st.NONE
    if not s.hears:
        release = make_release(m, agent)
    cal.asked(m)[agent] = 1
    s.left += last - first
    send_to_all(m, agent, cal.agents(m)[agent].version, cause, release, st.NOTHING, s.rounds)


@njit()
def _appoint_deadline(m):  # type: ignore[no-untyped-def]
    s = m.state
    place = cal.timer(m, st.LEARNER, s.rounds, st.NONE)
    is_next = s.deadline == s.interval
    time = begins(m, s.whole + 1, s.late) if is_next else begins(m, s.whole, s.late + 1)
    cal.appoint(m, max(until(time, s.end), s.now), place, st.REGULAR, st.DEADLINE, s.rounds, 0)


@njit()
def end_in_round(m, number):  # type: ignore[no-untyped-def]
    """Take note that the open round has one message, or one work, less to wait for; the last one closes it."""
    s = m.state
    if number == s.rounds and s.is_open:
        s.left -= 1
        if s.left == 0:
            _close(m)


@njit()
def close_at_deadline(m, number):  # type: ignore[no-untyped-def]
    """Close a round at its deadline."""
    s = m.state
    if number == s.rounds and s.is_open:
        s.is_due = 1
        _close(m)


@njit()
def _close(m):  # type: ignore[no-untyped-def]
    """Let those that took part update, one after the other."""
    s = m.state
    # One more than there are updates, so that the round cannot end before all have begun.
    s.left, s.is_open = 1, 0
    cal.push(m, st.CLOSING, st.ZERO, st.ZERO, st.ZERO)


@njit()
def close_next(m, compute):  # type: ignore[no-untyped-def]
    """Let the next agents update, as far as there is room, until something else follows."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    computes = compute is not None and s.computes != 0
    while s.state == st.RUNNING and s.at + st.ROOM <= s.most_events:
        agent = task.link
        if agent == s.n:
            s.depth -= 1
            _end_update(m)
            return
        task.link = agent + 1
        wake = cal.wakes(m)[agent]
        if wake == st.NONE:
            continue
        if computes and is_computing(m, agent):
            version = cal.workers(m)[agent].version
            cal.write(m, st.DROP, agent, st.NOBODY, version, stop_work(m, agent), st.NONE, st.SUPERSEDED)
        elif not cal.present(m)[agent]:
            is_work = computes and not s.hears and not cal.asked(m)[agent]
            version = cal.agents(m)[agent].version if is_work else st.NONE
            cal.write(m, st.DROP, agent, st.NOBODY, version, wake, st.NONE, st.OFFLINE)
        elif not s.hears and cal.asked(m)[agent]:
            commit(m, agent, st.NEIGHBOURS, wake, st.NONE)
        elif computes and s.hears:
            s.left += 1
            begin_work(m, agent, cal.agents(m)[agent].version, wake, st.NOTHING, st.NOBODY, st.NONE)
            return
        else:
            commit(m, agent, st.NEIGHBOURS, wake, make_release(m, agent))


@njit()
def _end_update(m):  # type: ignore[no-untyped-def]
    """Take note that one update has been made, or will not be; after the last one, the round has ended."""
    s = m.state
    s.left -= 1
    if s.left == 0 and s.state == st.RUNNING:
        appoint_round(m, s.is_due != 0)
        may_end(m)


# Time to compute


@njit()
def end_work(m, agent):  # type: ignore[no-untyped-def]
    """An agent has computed: it sends its model, or commits its update."""
    s, begin = m.state, stop_work(m, agent)
    if s.hears:
        commit(m, agent, st.NEIGHBOURS, begin, make_release(m, agent))
        _end_update(m)
    else:
        cal.push(m, st.SENT, s.rounds, st.ZERO, st.ZERO)
        _send_in_round(m, agent, begin)
        if not cal.asked(m)[agent]:
            # It has nobody to send to.
            cal.wakes(m)[agent] = begin


@njit()
def cancel_work(m, agent):  # type: ignore[no-untyped-def]
    """Drop the work of an agent that has left."""
    s, version = m.state, cal.workers(m)[agent].version
    cal.write(m, st.DROP, agent, st.NOBODY, version, stop_work(m, agent), st.NONE, st.OFFLINE)
    if s.hears:
        _end_update(m)
    else:
        cal.wakes(m)[agent] = st.NONE
        end_in_round(m, s.rounds)


@njit()
def fill(  # type: ignore[no-untyped-def]
    out, interval, hears, miss_key, misses, last_time, indptr, indices, ticks, wakes, run, wire
):
    """Write rounds until there is no room for another, or the run is over; returns how many events.

    ``ticks`` (n,) counts the rounds so far, each the place of a draw of who misses it; ``wakes`` (n,) is room. Other
    arguments as in `p2psim.network.compiled_engine.engine`.
    """
    releases, limits, versions, counters = run.releases, run.limits, run.versions, run.counters
    n = releases.size
    at, room = 0, 3 * n + indices.size
    while at + room <= out.size:
        now = until((ticks[0] + 1) * interval, last_time)
        if now > last_time:
            counters[STATE] = st.BY_TIME
            break
        seq = counters[SEQ]
        for i in range(n):
            wakes[i] = st.NONE
            missed = False
            if misses is not None:
                missed = uniform(miss_key, i, ticks[i]) < misses[i]
            ticks[i] += 1
            if missed:
                continue
            if releases[i] >= limits[i] and not run.goes_on:
                put(out, at, seq, now, st.WAKE, i, st.NOBODY, st.NONE, st.NONE, st.NONE, st.SPENT)
                at += 1
                seq += 1
                continue
            wakes[i] = seq
            put(out, at, seq, now, st.WAKE, i, st.NOBODY, st.NONE, st.NONE, st.NONE, st.OK)
            release = st.NONE if hears else make_an_ideal_release(i, run)
            first, last = indptr[i], indptr[i + 1]
            peer = np.int64(indices[first]) if last == first + 1 else st.NEIGHBOURS
            sent, version = seq + 1, versions[i]
            put(out, at + 1, sent, now, st.SEND, i, peer, version, seq, release, st.OK)
            at += 2
            seq += 2
            for link in range(first, last):
                end_message(out, at, seq, now, indices[link], i, link, version, sent, release, wire)
                at += 1
                seq += 1
        counters[SEQ] = seq
        for i in range(n):
            if wakes[i] != st.NONE and counters[STATE] == st.RUNNING:
                release = make_an_ideal_release(i, run) if hears else st.NONE
                at = commit_ideally(out, at, now, i, st.NEIGHBOURS, wakes[i], release, run)
        if counters[STATE] == st.RUNNING and counters[ABLE] == 0:
            counters[STATE] = st.EXHAUSTED
        if counters[STATE] != st.RUNNING:
            break
    return at
