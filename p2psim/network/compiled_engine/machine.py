"""The loop of the compiled engine: tasks of this instant, then what is due first.

A step does the last task that was written down. Where there is none it takes the first of what is due: changes of
links, turns of presence, appointments, and wakes, in this order where their times are equal. What follows at once it
writes down as tasks. So nothing calls itself, and the run can stop after any step: when the array of events is full, or
when it needs something (`state`).
"""

import math

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import exponential
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import ends, learner, medium, rounds, work
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine import synchronous as agent_rounds
from p2psim.network.compiled_engine.agents import cancel_work as cancel_work_of_agent
from p2psim.network.compiled_engine.agents import commit, may_end, next_work, update, wake_up
from p2psim.network.compiled_engine.agents import end_work as agent_has_computed
from p2psim.network.compiled_engine.ideal import sift_down
from p2psim.network.compiled_engine.links import change_links
from p2psim.network.compiled_engine.travel import carry, spread


@njit()
def advance(m):  # type: ignore[no-untyped-def]
    """Go on until the run is over, the array of events is full, or something is needed."""
    s = m.state
    while s.state == st.RUNNING and s.at + st.ROOM <= s.most_events:
        if s.spare < st.SPARE or s.depth + st.SPARE > s.most_tasks or s.spare_nodes < st.SPARE:
            s.state = st.NEEDS_ROOM
        elif s.depth:
            _do(
                m, m.radio, m.presence, m.acknowledged, m.gossip, m.request, m.queries, m.synchronous, m.compute
            )  # fmt: skip
        else:
            _go_on(m, m.presence, m.changing)


@njit()
def _go_on(m, presence, changing):  # type: ignore[no-untyped-def]
    """Do what is due first."""
    s = m.state
    when = cal.due(m)[0] if s.due_count else math.inf
    tick = cal.clock_times(m)[0]
    first = min(when, tick)
    if presence is not None:
        if s.turn < s.turn_count:
            if cal.turns(m)[s.turn].time <= first:
                if changing is not None and change_links(m, cal.turns(m)[s.turn].time):
                    return
                ends.take_turn(m)
                return
        elif first > s.known:
            s.state = st.NEEDS_TURNS
            return
    if changing is not None and first <= s.end and first < math.inf and change_links(m, first):
        return
    if first > s.end or first == math.inf:
        s.state = st.BY_TIME if s.timed else st.EXHAUSTED
    elif when <= tick:
        _come_up(
            m, m.radio, m.acknowledged, m.request, m.queries, m.synchronous, m.compute, cal.take_first(m)
        )
    else:
        _tick(m)


@njit(forceinline=True)
def _tick(m):  # type: ignore[no-untyped-def]
    """Let the first clock tick, and set it again."""
    s = m.state
    now, agent = cal.clock_times(m)[0], np.int64(cal.clock_agents(m)[0])
    s.now = now
    a = cal.agents(m)[agent]
    is_missed = learner.misses(m, agent)
    a.ticks += 1
    cal.clock_times(m)[0] = now + exponential(cal.key(m, st.CLOCKS), agent, a.ticks) / a.rate
    sift_down(cal.clock_times(m), cal.clock_agents(m), np.int64(0), s.n)
    if not is_missed and cal.present(m)[agent]:
        _wake(m, m.gossip, m.request, m.compute, agent)


@njit(forceinline=True)
def _wake(m, gossip, request, compute, agent):  # type: ignore[no-untyped-def]
    """Let an agent hear its clock."""
    if gossip is not None:
        wake_up(m, compute, agent)
    elif request is not None:
        learner.ask_learner(m, agent)


@njit()
def _come_up(m, radio, acknowledged, request, queries, synchronous, compute, place):  # type: ignore[no-untyped-def]
    """Do what was appointed."""
    e = cal.messages(m)[place]
    kind = e.kind
    if e.order == st.CHANNEL:
        if kind == st.ARRIVAL:
            ends.end(m, acknowledged, place)
        elif radio is not None:
            medium.end_airtime(m, place)
    elif kind == st.RESENDING and acknowledged is not None and m.state.again != 0:
        ends.send_again(m, place)
    elif kind == st.SLOT or kind == st.SENSING:
        if radio is not None:
            _take_turn_on_air(m, place)
    elif compute is not None and kind == st.COMPUTING:
        work.end_stretch(m, place)
    elif request is not None:
        if kind == st.RESENDING:
            learner.answer_again(m, place)
        else:
            owner, query, version = e.sender, e.query, e.version
            cal.free_message(m, place)
            learner.end_service(m, owner, query, version)
    elif queries is not None:
        _come_up_in_queries(m, place)
    elif synchronous is not None:
        number = e.query
        cal.free_message(m, place)
        if kind == st.ROUND:
            agent_rounds.begin_agents_round(m)
        else:
            agent_rounds.close_at_deadline(m, number)


@njit(forceinline=True)
def _take_turn_on_air(m, place):  # type: ignore[no-untyped-def]
    """Begin in a slot, or ask again for the medium."""
    if cal.messages(m)[place].kind == st.SLOT:
        medium.begin(m, place, st.AFTER_WAITING)
    else:
        medium.ask(m, place, st.AFTER_WAITING)


@njit(forceinline=True)
def _come_up_in_queries(m, place):  # type: ignore[no-untyped-def]
    """Do what was appointed in polls and rounds."""
    e = cal.messages(m)[place]
    kind, agent, number, version = e.kind, e.sender, e.query, e.version
    if kind == st.RESENDING:
        learner.answer_again(m, place)
        return
    cal.free_message(m, place)
    if kind == st.RESPONSE:
        learner.give_answer(m, agent, number, version)
    elif kind == st.POLL:
        rounds.poll(m, number)
    elif kind == st.ROUND:
        rounds.begin_round(m)
    else:
        rounds.close_round(m, version, True)


@njit()
def _do(m, radio, presence, acknowledged, gossip, request, queries, synchronous, compute):  # type: ignore[no-untyped-def]
    """Do the last task that was written down; those that have several parts take themselves off when they are done."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    what, message, link, last = task.what, task.message, task.link, task.last
    if what == st.SPREAD:
        spread(m)
        return
    if presence is not None:
        if what == st.TURN_GROUP:
            ends.turn_group(m, compute)
            return
        if what == st.TAKE_HELD or what == st.LOSE_HELD:
            ends.take_held(m, what == st.LOSE_HELD)
            return
        if what == st.GO:
            ends.go_for_good(m, compute)
            return
    if radio is not None:
        if what == st.FATES:
            medium.draw_fates(m)
            return
        if what == st.HEARD_BY:
            medium.end_at_next(m)
            return
        if what == st.FAIL_ALL:
            medium.fail_at_next(m)
            return
    if request is not None and what == st.CALL:
        learner.call_next(m)
        return
    if queries is not None and what == st.ASKING:
        rounds.ask_next(m)
        return
    if synchronous is not None:
        if what == st.WAKING:
            agent_rounds.wake_next(m, compute)
            return
        if what == st.CLOSING:
            agent_rounds.close_next(m, compute)
            return
    s.depth -= 1
    if what == st.END:
        ends.end(m, acknowledged, message)
    elif what == st.CARRY:
        carry(m, message)
    elif what == st.MAY_END:
        may_end(m)
    elif radio is not None and (what == st.NEXT or what == st.ASK or what == st.BEGIN):
        medium.go_on(m, what, message, link)
    elif presence is not None and what == st.GONE:
        ends.be_gone(m, message)
    elif acknowledged is not None and what == st.ACKNOWLEDGE:
        ends.acknowledge(m, message)
    elif acknowledged is not None and what == st.AGAIN_WAIT:
        ends.wait_to_send(m, message, link)
    elif compute is not None and what >= st.START_WORK:
        _do_work(m, gossip, synchronous, what, message)
    elif gossip is not None:
        if what == st.UPDATES:
            update(m, compute, link, last, message)
        elif what == st.AVERAGES:
            commit(m, link, last, message, st.NONE)
    elif request is not None:
        _do_for_request(m, what, message, link, last)
    elif queries is not None:
        _do_for_queries(m, what, message, link, last)
    elif synchronous is not None and what == st.SENT:
        agent_rounds.end_in_round(m, message)


@njit()
def _do_work(m, gossip, synchronous, what, agent):  # type: ignore[no-untyped-def]
    """Do a task of those who take time to compute."""
    if what == st.START_WORK:
        work.start_work(m, agent)
    elif what == st.DONE:
        if gossip is not None:
            agent_has_computed(m, agent)
        elif synchronous is not None:
            agent_rounds.end_work(m, agent)
        else:
            learner.end_work(m, agent)
    elif what == st.NEXT_WORK:
        if gossip is not None:
            next_work(m, agent)
    elif what == st.RESUME_WORK:
        work.resume_work(m, agent)
    elif what == st.STOPS_WORK and m.state.cancels == 0:
        work.pause_work(m, agent)
    elif work.is_computing(m, agent):
        if gossip is not None:
            cancel_work_of_agent(m, agent)
        elif synchronous is not None:
            agent_rounds.cancel_work(m, agent)
        else:
            learner.cancel_work(m, agent)


@njit(forceinline=True)
def _do_for_request(m, what, message, link, last):  # type: ignore[no-untyped-def]
    """Do a task of an exchange by request."""
    if what == st.SERVE_FOR:
        learner.serve_for(m, message, link, last)
    elif what == st.FRESH_WAIT:
        learner.wait_again(m, message)
    elif what == st.ANSWER_AGAIN:
        learner.answer_again(m, message)
    elif what == st.RETURNED:
        learner.call(m)


@njit(forceinline=True)
def _do_for_queries(m, what, message, link, last):  # type: ignore[no-untyped-def]
    """Do a task of polls or rounds."""
    if what == st.RESPOND:
        learner.respond(m, message, link, last)
    elif what == st.FRESH_WAIT:
        learner.wait_again(m, message)
    elif what == st.ANSWER_AGAIN:
        learner.answer_again(m, message)
    elif what == st.ASKED:
        rounds.wait_for_round(m, message)
    elif what == st.RETURNED:
        rounds.return_to_round(m, message)
