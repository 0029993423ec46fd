"""What a learner and its owners do: owners that ask, and owners that are asked.

See `p2psim.network.exchanges.request`, `poll` and `rounds`. A query or an answer carries the number of the query's
delivery that it belongs to (``query``), and an answer how often it may still be given again (``tries``).
"""

from p2psim.core.compiled import njit
from p2psim.core.philox import uniform
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.agents import (
    commit_of_learner,
    ended,
    is_spent,
    make_release,
    send,
)
from p2psim.network.compiled_engine.rounds import end_answer, learner_is_present
from p2psim.network.compiled_engine.travel import draw, lacks
from p2psim.network.compiled_engine.work import begin_work, is_computing, stop_work


@njit(forceinline=True)
def misses(m, agent):  # type: ignore[no-untyped-def]
    """Whether an agent misses the wake that comes now; each reason takes its draw. Its ticks are counted after that."""
    s, place = m.state, cal.agents(m)[agent].ticks
    keys, is_missed = cal.missed_keys(m), False
    for k in range(s.reasons):
        if uniform((keys[2 * k], keys[2 * k + 1]), agent, place) < cal.miss_chances(m)[k * s.n + agent]:
            is_missed = True
    return is_missed


# Request


@njit()
def ask_learner(m, owner):  # type: ignore[no-untyped-def]
    """An owner's clock ticked."""
    s = m.state
    if is_spent(m, owner):
        cal.write(m, st.WAKE, owner, st.NOBODY, st.NONE, st.NONE, st.NONE, st.SPENT)
    elif s.stops and cal.owners(m)[owner].served:
        return
    elif not learner_is_present(m):
        cal.write(m, st.WAKE, owner, st.NOBODY, st.NONE, st.NONE, st.NONE, st.OFFLINE)
    elif s.served < s.places and not cal.owners(m)[owner].served:
        _serve(m, owner, cal.write(m, st.WAKE, owner, st.NOBODY, st.NONE, st.NONE, st.NONE, st.OK))
    elif s.queues:
        node = cal.take_node(
            m, 0.0, 0.0, owner, cal.write(m, st.WAKE, owner, st.NOBODY, st.NONE, st.NONE, st.NONE, st.QUEUED)
        )
        if s.first_asked == st.NONE:
            s.first_asked = node
        else:
            cal.nodes(m)[s.last_asked].next = node
        s.last_asked = node
    else:
        cal.write(m, st.WAKE, owner, st.NOBODY, st.NONE, st.NONE, st.NONE, st.BUSY)


@njit()
def _serve(m, owner, wake):  # type: ignore[no-untyped-def]
    s = m.state
    s.served += 1
    cal.owners(m)[owner].served = 1
    send(m, st.LEARNER, owner, owner, s.commits, wake, st.NONE, st.COMPUTE, st.NONE, st.ZERO)


@njit()
def finish(m, owner):  # type: ignore[no-untyped-def]
    """End the service of an owner, and call the waiting owners."""
    m.state.served -= cal.owners(m)[owner].served
    cal.owners(m)[owner].served = 0
    call(m)


@njit()
def call(m):  # type: ignore[no-untyped-def]
    """Write down that waiting owners are called, unless that is going on."""
    s = m.state
    if not s.calling:
        s.calling = 1
        cal.push(m, st.CALL, st.ZERO, st.ZERO, st.ZERO)


@njit()
def call_next(m):  # type: ignore[no-untyped-def]
    """Serve the next that waits, as long as the learner can; the task stays until it cannot."""
    s = m.state
    node, before = s.first_asked, st.NONE
    can_serve = s.served < s.places and learner_is_present(m)
    # Who is being served goes on waiting.
    while can_serve and node != st.NONE and cal.owners(m)[cal.nodes(m)[node].i].served:
        before, node = node, cal.nodes(m)[node].next
    if node == st.NONE or not can_serve:
        s.depth -= 1
        s.calling = 0
        return
    owner, wake, after = cal.nodes(m)[node].i, cal.nodes(m)[node].j, cal.nodes(m)[node].next
    if before == st.NONE:
        s.first_asked = after
    else:
        cal.nodes(m)[before].next = after
    if after == st.NONE:
        s.last_asked = before
    cal.free_node(m, node)
    if is_spent(m, owner):
        cal.write(m, st.DROP, owner, st.NOBODY, st.NONE, wake, st.NONE, st.SPENT)
    elif not cal.present(m)[owner]:
        cal.write(m, st.DROP, owner, st.NOBODY, st.NONE, wake, st.NONE, st.OFFLINE)
    else:
        _serve(m, owner, wake)


@njit()
def serve_for(m, owner, query, version):  # type: ignore[no-untyped-def]
    """Let an owner compute for the service time, and then answer."""
    s = m.state
    learner = cal.row(m, st.LEARNER)
    if lacks(m, st.SERVICE_TIME, learner):
        cal.push(m, st.SERVE_FOR, owner, query, version)
        return
    wait = draw(m, st.SERVICE_TIME, learner)
    if wait == 0.0:
        end_service(m, owner, query, version)
    else:
        place = cal.timer(m, owner, query, version)
        cal.appoint(m, s.now + wait, place, st.WAIT, st.SERVICE, query, st.ZERO)


@njit()
def end_service(m, owner, query, version):  # type: ignore[no-untyped-def]
    """An owner has computed its answer."""
    if not cal.present(m)[owner]:
        cal.write(m, st.DROP, owner, st.LEARNER, version, query, st.NONE, st.OFFLINE)
        finish(m, owner)
    else:
        _give(m, owner, query, version, st.SERVED)


@njit()
def hear_server(m, compute, place, delivery):  # type: ignore[no-untyped-def]
    """A query to the owner that is served has arrived, or its answer."""
    s, e = m.state, cal.messages(m)[place]
    if e.what == st.COMPUTE:
        if compute is not None and s.computes:
            begin_work(m, e.receiver, e.version, delivery, st.SERVED, st.LEARNER, st.NONE)
        else:
            serve_for(m, e.receiver, delivery, e.version)
        return
    ended(m, e.release)
    commit_of_learner(m, e.sender, delivery, e.release)
    if s.state == st.RUNNING:
        finish(m, e.sender)


# Answers, given again if they are lost and the channel asks for that


@njit()
def _give(m, owner, query, version, what):  # type: ignore[no-untyped-def]
    """Answer a query for the first time."""
    s = m.state
    if s.fresh:
        cal.owners(m)[owner].wanted = query
    send(m, owner, st.LEARNER, owner, version, query, make_release(m, owner), what, query, s.fresh)


@njit()
def lose(m, place):  # type: ignore[no-untyped-def]
    """A query or an answer was lost."""
    e = cal.messages(m)[place]
    if m.state.fresh and e.tries:
        timer_ = cal.timer(m, e.sender, e.query, e.version)
        cal.messages(m)[timer_].what, cal.messages(m)[timer_].tries = e.what, e.tries
        wait_again(m, timer_)
    else:
        _give_up(m, e.what, e.receiver if e.sender == st.LEARNER else e.sender, e.version)


@njit()
def _give_up(m, what, owner, version):  # type: ignore[no-untyped-def]
    """Take note that a query will not be answered."""
    if what in (st.COMPUTE, st.SERVED):
        finish(m, owner)
    else:
        end_answer(m, version)


@njit()
def wait_again(m, place):  # type: ignore[no-untyped-def]
    """Wait, and answer again; ``place`` is that of a timer."""
    s, e = m.state, cal.messages(m)[place]
    if lacks(m, st.WAIT_AGAIN, e.sender):
        cal.push(m, st.FRESH_WAIT, place, st.ZERO, st.ZERO)
        return
    wait = draw(m, st.WAIT_AGAIN, e.sender)
    if wait == 0.0:
        cal.push(m, st.ANSWER_AGAIN, place, st.ZERO, st.ZERO)
    else:
        cal.appoint(m, s.now + wait, place, st.WAIT, st.RESENDING, e.query, st.ZERO)


@njit()
def answer_again(m, place):  # type: ignore[no-untyped-def]
    """Answer again, with a new release, if the answer is still wanted."""
    e = cal.messages(m)[place]
    owner, query, version, what, left = e.sender, e.query, e.version, e.what, e.tries
    cal.free_message(m, place)
    if cal.owners(m)[owner].wanted == query and cal.present(m)[owner] and not is_spent(m, owner):
        send(m, owner, st.LEARNER, owner, version, query, make_release(m, owner), what, query, left - 1)
    else:
        _give_up(m, what, owner, version)


# Poll and rounds


@njit()
def hear_query(m, compute, place, delivery):  # type: ignore[no-untyped-def]
    """An owner hears a query."""
    s, e = m.state, cal.messages(m)[place]
    owner, version = e.receiver, e.version
    if s.fresh:
        cal.owners(m)[owner].wanted = st.NONE
    if is_spent(m, owner):
        end_answer(m, version)
        return
    is_missed = misses(m, owner)
    cal.agents(m)[owner].ticks += 1
    if is_missed:
        cal.write(m, st.DROP, owner, st.LEARNER, version, delivery, st.NONE, st.OFFLINE)
        end_answer(m, version)
        return
    older, newest = cal.owners(m)[owner].owed, cal.owners(m)[owner].newest
    if s.pattern != st.POLLS:
        # Only an answer that is still owed supersedes: one of a closed round may be given after a later one.
        newest = newest if older != st.NONE else 0
    if version < newest:
        cal.write(m, st.DROP, owner, st.LEARNER, version, delivery, st.NONE, st.SUPERSEDED)
        return
    if older != st.NONE:
        cal.write(m, st.DROP, owner, st.LEARNER, cal.owners(m)[owner].newest, older, st.NONE, st.SUPERSEDED)
    cal.owners(m)[owner].newest = version
    cal.owners(m)[owner].owed = delivery
    if compute is not None and s.computes:
        if is_computing(m, owner):
            stop_work(m, owner)
        cal.owners(m)[owner].owed = begin_work(m, owner, version, delivery, st.USE, st.LEARNER, st.NONE)
    else:
        respond(m, owner, delivery, version)


@njit()
def respond(m, owner, query, version):  # type: ignore[no-untyped-def]
    """Answer after the response time."""
    if lacks(m, st.RESPONSE_TIME, owner):
        cal.push(m, st.RESPOND, owner, query, version)
        return
    wait = draw(m, st.RESPONSE_TIME, owner)
    if wait == 0.0:
        give_answer(m, owner, query, version)
    else:
        place = cal.timer(m, owner, query, version)
        cal.appoint(m, m.state.now + wait, place, st.WAIT, st.RESPONSE, query, st.ZERO)


@njit()
def give_answer(m, owner, query, version):  # type: ignore[no-untyped-def]
    """Answer, if that is still owed."""
    if cal.owners(m)[owner].owed != query:
        return
    cal.owners(m)[owner].owed = st.NONE
    if cal.present(m)[owner]:
        _give(m, owner, query, version, st.USE)
    else:
        cal.write(m, st.DROP, owner, st.LEARNER, version, query, st.NONE, st.OFFLINE)
        end_answer(m, version)


@njit()
def hear_asker(m, compute, place, delivery):  # type: ignore[no-untyped-def]
    """A query or an answer of a poll or a round has arrived."""
    e = cal.messages(m)[place]
    if e.what == st.HEAR:
        hear_query(m, compute, place, delivery)
        return
    ended(m, e.release)
    if m.state.pattern == st.POLLS:
        commit_of_learner(m, e.sender, delivery, e.release)
    else:
        end_answer(m, e.version)


# Time to compute


@njit()
def end_work(m, owner):  # type: ignore[no-untyped-def]
    """An owner has computed its answer."""
    what, version = cal.workers(m)[owner].what, cal.workers(m)[owner].version
    begin = stop_work(m, owner)
    if what == st.SERVED:
        end_service(m, owner, begin, version)
    else:
        give_answer(m, owner, begin, version)


@njit()
def cancel_work(m, owner):  # type: ignore[no-untyped-def]
    """Drop the work of an owner that has left: it gives no answer."""
    what, version = cal.workers(m)[owner].what, cal.workers(m)[owner].version
    cal.write(m, st.DROP, owner, st.LEARNER, version, stop_work(m, owner), st.NONE, st.OFFLINE)
    if what != st.SERVED:
        cal.owners(m)[owner].owed = st.NONE
    _give_up(m, what, owner, version)
