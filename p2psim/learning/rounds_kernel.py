"""The compiled replay of synchronous rounds: events in, models out.

State that is kept between chunks of events:

- ``models`` (T, p): θ[1] … of the learner, by version, as far as they have been made; ``average`` (p,): theirs;
- ``arrived`` (N, p): the answers of the open round that have reached the learner; ``has`` (N,) whose they are;
- ``places``, ``payloads``, ``free``, ``free_rows``: answers on their way, see `p2psim.learning.in_flight`;
- ``commits`` (1,): rounds so far; ``counts`` (N,): those in which each owner's answer was used.
"""

import numpy as np

from p2psim.compiled import njit
from p2psim.learning.grid_kernel import snapped
from p2psim.learning.in_flight import DONE, post, take
from p2psim.learning.owner_kernel import answer, project
from p2psim.moments import is_past
from p2psim.network.events import COMMIT, DELIVER, DROP, LEARNER, SEND


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, models, average, arrived, has, places, payloads, free, free_rows, commits, counts,
    how, loss, gram, moment, X, y, norms, offsets, clip, grid, batch,
    suspects, suspect_offsets, bound, violations, violation_steps, violation_sizes,
    noise, noise_row, steps, shares, l2, theta_max, averages, keep, takes, newest,
    at_learner, at_owner, estimated, by_answered,
    every_step, every_time, next_time, kept_theta, kept_step, kept_time,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event, records kept, next record time)."""
    owners, p = arrived.shape
    kept = 0
    total, mean = np.empty(p), np.empty(p)
    for e in range(start, events.size):
        event = events[e]
        kind, agent = event.kind, event.agent
        while is_past(event.time, next_time):
            kept_theta[kept] = average if averages else models[commits[0]]
            kept_step[kept], kept_time[kept] = commits[0], next_time
            kept += 1
            next_time = every_time * np.rint(next_time / every_time + 1.0)
        if kind == SEND and agent != LEARNER:
            row = post(event.seq, event.version, places, free, free_rows)
            if row < 0:
                return row, e, kept, next_time
            answer(
                agent, event.release, commits[0], models[event.version], mean,
                how, loss, gram, moment, X, y, norms, offsets, clip, batch,
                suspects, suspect_offsets, bound, violations, violation_steps, violation_sizes,
            )  # fmt: skip
            drawn = noise_row[0]
            noise_row[0] += 1
            for a in range(p):
                payloads[row, a] = snapped(at_owner[agent] * mean[a] + noise[drawn, a], grid)
        elif kind in (DELIVER, DROP) and agent == LEARNER and event.cause >= 0:
            row, version = take(event.cause, places, free, free_rows)
            # An answer to an older round comes too late.
            if row >= 0 and kind == DELIVER and version == commits[0]:
                arrived[event.peer] = payloads[row]
                has[event.peer] = True
        elif kind == COMMIT:
            k = commits[0]
            total[:] = 0.0
            answered = 0.0
            for i in range(owners):
                if has[i]:
                    weight = at_learner[i]
                    if estimated:
                        weight *= (k + 1) / (counts[i] + 1)
                    answered += shares[i]
                    counts[i] += 1
                    for a in range(p):
                        total[a] += weight * shares[i] * arrived[i, a]
            scale = 1.0 / answered if by_answered and answered > 0.0 else 1.0
            for a in range(p):
                at = models[k, a]
                models[k + 1, a] = project(at - steps[k] * (2.0 * l2 * at + scale * total[a]), theta_max)
                average[a] = keep[k] * average[a] + takes[k] * models[k + newest, a]
            has[:] = False
            commits[0] = k + 1
            if every_step > 0 and commits[0] % every_step == 0:
                kept_theta[kept] = average if averages else models[k + 1]
                kept_step[kept], kept_time[kept] = commits[0], event.time
                kept += 1
    return DONE, events.size, kept, next_time
