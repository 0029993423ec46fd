// The state after any event, looked up and not played: present, in flight, collided, versions, releases, ε.
function stateAt(r, k) {
  if (stateAt.last?.k === k) return stateAt.last;
  const upTo = (table, row) => countUpTo(table.places, k, table.start[row], table.start[row + 1]);
  const versions = [], present = [], releases = [], epsilon = [], lag = [];
  const versionOf = (row) => {
    const made = upTo(r.commits, row);
    return made ? r.version[r.commits.places[r.commits.start[row] + made - 1]] : r.arrays["before/versions"][row];
  };
  const isPresent = (row) => {
    const turned = upTo(r.turns, row);
    return turned ? r.kind[r.turns.places[r.turns.start[row] + turned - 1]] === JOIN : r.arrays["before/present"][row] === 1;
  };
  const learner = r.star ? versionOf(r.n) : null;
  let online = 0, exhausted = 0;
  for (let a = 0; a < r.n; a++) {
    present.push(isPresent(a));
    online += present[a];
    const made = r.arrays["before/releases"][a] + upTo(r.releases, a);
    releases.push(made);
    exhausted += r.limit[a] >= 0 && made >= r.limit[a];
    epsilon.push(epsilonOf(r, a, made));
    versions.push(r.star ? null : versionOf(a));
    if (r.star) {
      const heard = upTo(r.heard, a);
      lag.push(learner - (heard ? r.version[r.heard.places[r.heard.start[a] + heard - 1]] : 0));
    }
  }
  const sum = (name) => (r.N ? r.sums[name][k] : 0);
  return (stateAt.last = {
    k, seq: r.first + k, time: r.time[k], kind: KINDS[r.kind[k]], outcome: OUTCOMES[r.outcome[k]], agent: r.agent[k], peer: r.peer[k],
    present, online, learnerPresent: r.star ? isPresent(r.n) : null, learnerVersion: learner, inFlight: sum("inFlight"),
    collided: sum("collided"), delivered: sum("delivered"), queue: sum("queue"), versions, releases, epsilon, exhausted, lag,
  });
}

/** ε that an agent's first releases cost: between the numbers of releases that were computed, a line. */
function epsilonOf(r, agent, made) {
  const counts = r.arrays["spent/count"];
  if (!counts) return null;
  const size = counts.length / r.n, first = agent * size, epsilon = r.arrays["spent/epsilon"];
  const above = countUpTo(counts, made, first, first + size, true);
  if (above === size) return epsilon[first + size - 1];
  const high = first + above;
  if (counts[high] === made || above === 0) return epsilon[high];
  const part = (made - counts[high - 1]) / (counts[high] - counts[high - 1]);
  return epsilon[high - 1] + part * (epsilon[high] - epsilon[high - 1]);
}

/** The events that led to one, and those that followed from it: at most so many. */
function chainOf(r, place, most = 400) {
  const chain = new Set();
  for (let i = place; i >= 0 && chain.size < most; i = r.cause[i]) chain.add(i);
  const after = new Set([place]);
  const stop = Math.min(r.N, place + 20000);
  for (let i = place + 1; i < stop && chain.size < most; i++) if (after.has(r.cause[i])) { after.add(i); chain.add(i); }
  return chain;
}

/** An event in words. */
function describe(r, i) {
  const who = r.name(r.agent[i]), peer = r.peer[i] === -2 ? null : r.name(r.peer[i]), outcome = OUTCOMES[r.outcome[i]];
  const why = r.outcome[i] === OK ? "" : ` (${outcome})`, release = r.makes[i] ? `, release ${r.release[i]}` : "";
  const version = r.version[i] < 0 ? "" : ` version ${r.version[i]}`;
  switch (r.kind[i]) {
    case WAKE: return `${who} wakes${why}`;
    case SEND: return `${who} sends${version || " a question"} to ${peer}${release}`;
    case DELIVER: return `${who} hears ${peer}${version && `:${version}`}${r.isLate[i] ? ", too late for the round" : ""}`;
    case DROP: return peer == null ? `${who} drops what it was to do${why}` : `a message of ${peer} to ${who} is dropped${why}`;
    case COMMIT: return `${who} updates its model:${version}${peer == null ? "" : `, with ${r.peer[i] === NEIGHBOURS ? "all that was heard" : `what ${peer} sent`}`}${release}`;
    case JOIN: return `${who} comes back online`;
    case LEAVE: return `${who} goes offline`;
    case RETRY: return `${who} sends again to ${peer}${why}`;
    default: return `${who} begins to compute`;
  }
}
