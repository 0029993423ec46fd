"""What a learner does that asks owners, all of them or some, at regular times.

See `p2psim.network.exchanges.rounds`; steps are in the order in which they are written there.
Where no message takes time a round ends at the moment at which it begins, and `fill` writes it as a whole.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DROP, LEARNER, NEIGHBOURS, NONE, OFFLINE, OK, SEND
from p2psim.core.philox import uniform
from p2psim.core.times import is_past, until
from p2psim.network.compiled_engine import ideal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.agents import commit_of_learner, may_end, send, send_to_all
from p2psim.network.compiled_engine.calendar import appoint, asked, key, present, push, tasks, timer


@njit(forceinline=True)
def learner_is_present(m):  # type: ignore[no-untyped-def]
    """Whether the learner is online."""
    return present(m)[m.state.n] != 0


@njit()
def ask_all(m):  # type: ignore[no-untyped-def]
    """Send a query to all owners."""
    s = m.state
    s.query = s.seq
    send_to_all(m, st.LEARNER, s.commits, st.NONE, st.NONE, st.HEAR, st.NONE)


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
    place = timer(m, st.LEARNER, number, st.NONE)
    appoint(m, max(until(number * s.interval, s.end), s.now), place, st.REGULAR, st.POLL, number, 0)


@njit()
def end_answer(m, version):  # type: ignore[no-untyped-def]
    """Take note that an answer is no longer waited for; the last of a round closes it."""
    s = m.state
    if s.pattern != st.POLLS and version == s.commits:
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
    commit_of_learner(m, st.NEIGHBOURS, s.query, st.NONE)
    if s.state == st.RUNNING:
        s.is_open = 0
        appoint_round(m, is_late)
        may_end(m)


@njit()
def begins(m, whole, late):  # type: ignore[no-untyped-def]
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
    begin = begins(m, s.whole, s.late)
    if is_past(s.now, begin):
        s.since, s.whole, s.late = s.now, 0, 0
        begin = s.now
    s.rounds += 1
    place = timer(m, st.LEARNER, s.rounds, st.NONE)
    appoint(m, until(max(begin, s.now), s.end), place, st.REGULAR, st.ROUND, s.rounds, 0)


@njit()
def draw_owners(marks, owners, key, place, some):  # type: ignore[no-untyped-def]
    """Mark so many owners, by draws from a place on, as `p2psim.network.exchanges.rounds.drawn` does."""
    for i in range(owners):
        marks[i] = 0
    for last in range(owners - some, owners):
        one = np.int64(uniform(key, LEARNER, place) * (last + 1))
        place += 1
        marks[last if marks[one] else one] = 1


@njit()
def begin_round(m):  # type: ignore[no-untyped-def]
    """Ask all owners, or some, and wait; a learner that is away lets the round pass."""
    s = m.state
    if not learner_is_present(m):
        appoint_round(m, False)
        return
    # One more than are asked, so that it cannot close before everybody was asked.
    s.left, s.is_due, s.is_open = (s.some if s.some else s.n) + 1, 0, 1
    # Whatever has been answered is still to be used.
    s.in_flight += 1
    push(m, st.ASKED, s.commits, st.ZERO, st.ZERO)
    if s.some:
        draw_owners(asked(m), s.n, key(m, st.PARTICIPANTS), s.choices, s.some)
        s.choices += s.some
        s.query = st.NONE
        push(m, st.ASKING, st.ZERO, st.ZERO, st.ZERO)
    else:
        ask_all(m)


@njit()
def ask_next(m):  # type: ignore[no-untyped-def]
    """Send a query to the next owner that was drawn; the first one names the round."""
    s = m.state
    task = tasks(m)[s.depth - 1]
    owner = task.link
    while owner < s.n and not asked(m)[owner]:
        owner += 1
    if owner == s.n:
        s.depth -= 1
        return
    task.link = owner + 1
    if s.query == st.NONE:
        s.query = s.seq
    send(m, st.LEARNER, owner, owner, s.commits, st.NONE, st.NONE, st.HEAR, st.NONE, st.ZERO)


@njit()
def wait_for_round(m, version):  # type: ignore[no-untyped-def]
    """Everybody was asked: wait for the answers, until the deadline at most."""
    s = m.state
    end_answer(m, version)
    if s.deadline > 0 and s.is_open and s.state == st.RUNNING:
        place = timer(m, st.LEARNER, s.rounds, version)
        is_next = s.deadline == s.interval
        time = begins(m, s.whole + 1, s.late) if is_next else begins(m, s.whole, s.late + 1)
        appoint(m, max(until(time, s.end), s.now), place, st.REGULAR, st.DEADLINE, s.rounds, 0)


@njit()
def return_to_round(m, agent):  # type: ignore[no-untyped-def]
    """A learner that comes back closes the round that was due to close."""
    s = m.state
    if agent == st.LEARNER and s.is_due:
        s.is_due = 0
        close_round(m, s.commits, False)


@njit(allocates=False)
def fill(  # type: ignore[no-untyped-def]
    out, interval, choice_key, some, asked, miss_key, misses, last_time, heard, run, wire
):
    """Write rounds until there is no room for another, or the run is over; returns how many events.

    ``some`` owners are drawn for each round, all of them where it is 0; ``asked`` (N,) marks them. ``heard`` (N,)
    counts the queries at which each owner could have missed one, each the place of a draw. Other arguments as in
    `p2psim.network.compiled_engine.engine`.
    """
    releases, limits, counters = run.releases, run.limits, run.counters
    owners, at = releases.size, 0
    while at + 2 + 4 * owners <= out.size:
        began = until((counters[ideal.TOTAL] + 1) * interval, last_time)
        if began > last_time:
            counters[ideal.STATE] = st.BY_TIME
            break
        k, query = counters[ideal.TOTAL], counters[ideal.SEQ]
        seq, sent = query, query
        if some:
            draw_owners(asked, owners, choice_key, k * some, some)
        else:
            ideal.put(
                out, at, query, began, SEND, LEARNER, NEIGHBOURS if owners > 1 else 0, k, NONE, NONE, OK
            )
            at += 1
            seq += 1
        for i in range(owners):
            if some:
                if not asked[i]:
                    continue
                sent = seq
                ideal.put(out, at, sent, began, SEND, LEARNER, i, k, NONE, NONE, OK)
                at += 1
                seq += 1
            arrived = ideal.end_message(out, at, seq, began, i, LEARNER, i, k, sent, NONE, wire)
            at += 1
            seq += 1
            if not arrived or releases[i] >= limits[i]:
                continue
            if misses is not None:
                missed = uniform(miss_key, i, heard[i]) < misses[i]
                heard[i] += 1
                if missed:
                    ideal.put(out, at, seq, began, DROP, i, LEARNER, k, seq - 1, NONE, OFFLINE)
                    at += 1
                    seq += 1
                    continue
            release = ideal.make_release(i, run)
            ideal.put(out, at, seq, began, SEND, i, LEARNER, k, seq - 1, release, OK)
            ideal.end_message(out, at + 1, seq + 1, began, LEARNER, i, i, k, seq, release, wire)
            at += 2
            seq += 2
        ideal.put(out, at, seq, began, COMMIT, LEARNER, NEIGHBOURS, k + 1, query, NONE, OK)
        at += 1
        counters[ideal.SEQ] = seq + 1
        counters[ideal.TOTAL] = k + 1
        if counters[ideal.TOTAL] == counters[ideal.LAST]:
            counters[ideal.STATE] = st.BY_COMMITS
        elif counters[ideal.ABLE] == 0:
            counters[ideal.STATE] = st.EXHAUSTED
        if counters[ideal.STATE] != st.RUNNING:
            break
    return at
