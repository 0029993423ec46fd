"""Who computes: the beginning of a work, how long it goes on, and what becomes of it when its agent leaves.

See `p2psim.network.simpy_engine.agents`. What follows when an agent has computed is in `agents` and `learner`.
"""

from p2psim.core.compiled import njit
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.travel import draw, lacks


@njit(forceinline=True)
def is_computing(m, agent):  # type: ignore[no-untyped-def]
    """Whether an agent computes, or will go on to when it returns."""
    return cal.workers(m)[agent].begin != st.NONE


@njit()
def begin_work(m, agent, version, cause, what, peer, link):  # type: ignore[no-untyped-def]
    """Let an agent begin to compute, which leads to what a message may lead to; returns the number of the event."""
    w = cal.workers(m)[agent]
    w.begin = cal.write(m, st.BEGINS, agent, st.NOBODY, version, cause, st.NONE, st.OK)
    w.version = version
    w.what = what
    w.peer = peer
    w.link = link
    cal.push(m, st.START_WORK, agent, st.ZERO, st.ZERO)
    return w.begin


@njit()
def start_work(m, agent):  # type: ignore[no-untyped-def]
    """Draw how long an agent computes."""
    if lacks(m, st.COMPUTE_TIME, agent):
        cal.push(m, st.START_WORK, agent, st.ZERO, st.ZERO)
        return
    _work_for(m, agent, draw(m, st.COMPUTE_TIME, agent) * cal.workers(m)[agent].factor)


@njit()
def _work_for(m, agent, time):  # type: ignore[no-untyped-def]
    """Let the work of an agent go on for a time."""
    s, w = m.state, cal.workers(m)[agent]
    w.until = s.now + time
    w.is_paused = 0
    w.stretch += 1
    if time == 0.0:
        cal.push(m, st.DONE, agent, st.ZERO, st.ZERO)
    else:
        cal.appoint(
            m, w.until, cal.timer(m, agent, w.stretch, st.NONE), st.WAIT, st.COMPUTING, w.begin, st.ZERO
        )


@njit()
def end_stretch(m, place):  # type: ignore[no-untyped-def]
    """An agent would be done now, unless it has stopped or paused."""
    agent, stretch = cal.messages(m)[place].sender, cal.messages(m)[place].query
    cal.free_message(m, place)
    if cal.workers(m)[agent].stretch == stretch:
        cal.push(m, st.DONE, agent, st.ZERO, st.ZERO)


@njit()
def stop_work(m, agent):  # type: ignore[no-untyped-def]
    """Let an agent stop; returns the number of the event with which it began."""
    w = cal.workers(m)[agent]
    begin = w.begin
    w.begin = st.NONE
    w.is_paused = 0
    w.stretch += 1
    return begin


@njit()
def pause_work(m, agent):  # type: ignore[no-untyped-def]
    """Keep what is left of the work of an agent that leaves."""
    w = cal.workers(m)[agent]
    if w.begin != st.NONE:
        w.rest = w.until - m.state.now
        w.is_paused = 1
        w.stretch += 1


@njit()
def resume_work(m, agent):  # type: ignore[no-untyped-def]
    """Let the work of an agent that returns go on."""
    w = cal.workers(m)[agent]
    if w.begin != st.NONE and w.is_paused:
        _work_for(m, agent, w.rest)


@njit()
def drop_waiting(m, agent, outcome):  # type: ignore[no-untyped-def]
    """Drop the model that waits for an agent, if there is one."""
    w = cal.workers(m)[agent]
    if w.waiting != st.NONE:
        cal.write(m, st.DROP, agent, st.NOBODY, st.NONE, w.waiting, st.NONE, outcome)
        w.waiting = st.NONE


@njit()
def let_wait(m, agent, delivery, peer, link):  # type: ignore[no-untyped-def]
    """Have a model wait until an agent is done."""
    w = cal.workers(m)[agent]
    w.waiting = delivery
    w.waiting_peer = peer
    w.waiting_link = link
