// The recorded replica: its events as arrays, its messages, and indices by agent, so that any moment is found at once.
const KINDS = ["wake", "send", "deliver", "drop", "commit", "join", "leave", "retry", "begin"];
const OUTCOMES = ["ok", "queued", "busy", "spent", "loss", "collision", "offline", "superseded", "gave-up", "unacknowledged", "alone"];
const [WAKE, SEND, DELIVER, DROP, COMMIT, JOIN, LEAVE, RETRY, BEGIN] = KINDS.keys();
const OK = 0, COLLISION = 5, OFFLINE = 6, SUPERSEDED = 7;
const LEARNER = -1, NEIGHBOURS = -3;
// How a message ended at a receiver.
const ARRIVED = 0, LOST = 1, COLLIDED = 2, AWAY = 3, LATE = 4, TRAVELS = 5;
const BLOCK = 256;

function openRecording(plain, arrays) {
  const r = { ...plain, N: plain.events.count, first: plain.events.first };
  for (const name of ["kind", "outcome", "agent", "peer", "version", "release", "receivers", "limit", "layout", "overview"]) r[name] = arrays[name];
  r.arrays = arrays;
  r.time = new Float64Array(r.N);
  const changes = unpackBits(arrays["time/changes"], r.N), moments = arrays["time/moments"];
  for (let i = 0, at = -1; i < r.N; i++) r.time[i] = moments[(at += changes[i])];
  r.isLate = unpackBits(arrays.late, r.N);
  r.cause = new Int32Array(r.N);
  for (let i = 0; i < r.N; i++) r.cause[i] = arrays.back[i] && i - arrays.back[i] >= 0 ? i - arrays.back[i] : -1;
  r.until = r.first + r.N < plain.events.all && r.N ? r.time[r.N - 1] : r.end;
  findMessages(r);
  sumUp(r);
  r.turns = byAgent(r, (i) => r.kind[i] === JOIN || r.kind[i] === LEAVE);
  r.commits = byAgent(r, (i) => r.kind[i] === COMMIT);
  r.heard = byAgent(r, (i) => r.kind[i] === DELIVER && r.star && r.peer[i] === LEARNER);
  const made = [...arrays["before/releases"]];
  r.exhausted = [];
  r.releases = byAgent(r, (i) => {
    const agent = r.agent[i];
    const makes = agent >= 0 && r.release[i] >= 0 && (r.kind[i] === SEND || r.kind[i] === COMMIT) && r.release[i] === made[agent];
    if (makes && (made[agent] += 1) === r.limit[agent]) r.exhausted.push(i);
    return makes;
  });
  r.makes = new Uint8Array(r.N);
  for (const place of r.releases.places) r.makes[place] = 1;
  r.works = [];
  const open = new Map();
  for (let i = 0; i < r.N; i++) {
    if (r.kind[i] === BEGIN) open.set(i, r.works.push({ agent: r.agent[i], begin: r.time[i], end: r.until }) - 1);
    else if (open.has(r.cause[i])) { r.works[open.get(r.cause[i])].end = r.time[i]; open.delete(r.cause[i]); }
  }
  findAirtime(r);
  r.jumps = { collision: [], drop: [], departure: [], exhausted: r.exhausted };
  for (let i = 0; i < r.N; i++) {
    if (r.kind[i] === DROP) { r.jumps.drop.push(i); if (r.outcome[i] === COLLISION) r.jumps.collision.push(i); }
    if (r.kind[i] === LEAVE) r.jumps.departure.push(i);
  }
  r.name = (agent) => (agent === LEARNER ? "learner" : agent === NEIGHBOURS ? (r.star ? "all owners" : "all neighbours") : agent < 0 ? "nobody" : r.labels[agent] || String(agent));
  return r;
}

/** Each message at each receiver: the send, the event that ends it (or none), and how. In the order of the sends. */
function findMessages(r) {
  const ends = new Map();
  r.ends = unpackBits(r.arrays.ends, r.N);
  for (let i = 0; i < r.N; i++) {
    const send = r.cause[i];
    // Of a message that was sent before the page's first event the send is not known here.
    if (!r.ends[i] || send < 0) continue;
    if (ends.has(send)) ends.get(send).push(i); else ends.set(send, [i]);
  }
  const send = [], end = [], how = [];
  for (let i = 0; i < r.N; i++) {
    if (r.kind[i] !== SEND) continue;
    const mine = ends.get(i) ?? [];
    for (const e of mine) {
      send.push(i); end.push(e);
      how.push(r.kind[e] === DELIVER ? (r.isLate[e] ? LATE : ARRIVED) : r.outcome[e] === COLLISION ? COLLIDED : r.outcome[e] === OFFLINE ? AWAY : LOST);
    }
    if (mine.length < r.receivers[i] && r.peer[i] >= LEARNER) { send.push(i); end.push(-1); how.push(TRAVELS); }
  }
  r.messages = { send: Int32Array.from(send), end: Int32Array.from(end), how: Uint8Array.from(how), count: send.length };
  const blocks = Math.ceil(send.length / BLOCK);
  r.messages.last = new Float64Array(blocks);
  for (let m = 0; m < send.length; m++) {
    const until = end[m] < 0 ? Infinity : r.time[end[m]], block = Math.floor(m / BLOCK);
    if (until > r.messages.last[block]) r.messages.last[block] = until;
  }
}

/** Call for the messages that are under way at some time between two moments, until it returns false. */
function eachMessage(r, from, to, call) {
  const { send, end, how, count, last } = r.messages;
  for (let block = 0; block < last.length; block++) {
    if (last[block] < from) continue;
    if (r.time[send[block * BLOCK]] > to) return;
    for (let m = block * BLOCK; m < Math.min(count, (block + 1) * BLOCK); m++) {
      if (r.time[send[m]] > to) return;
      const ends = end[m] < 0 ? Infinity : r.time[end[m]];
      if (ends >= from && call(send[m], end[m], how[m], ends) === false) return;
    }
  }
}

/** Running counts after each event. */
function sumUp(r) {
  const [inFlight, collided, delivered, queue] = r.arrays["before/sums"];
  r.sums = { inFlight: new Int32Array(r.N), collided: new Int32Array(r.N), delivered: new Int32Array(r.N), queue: new Int32Array(r.N) };
  const now = { inFlight, collided, delivered, queue };
  for (let i = 0; i < r.N; i++) {
    const kind = r.kind[i];
    if (kind === SEND) now.inFlight += r.receivers[i];
    now.inFlight -= r.ends[i];
    if (kind === DROP && r.outcome[i] === COLLISION) now.collided++;
    if (kind === DELIVER) now.delivered++;
    now.queue += r.arrays.queue[i];
    for (const name in now) r.sums[name][i] = now[name];
  }
}

/** Places of chosen events by agent, the learner's at the end: rows of one compressed table. */
function byAgent(r, chosen) {
  const start = new Int32Array(r.n + 2), found = [];
  for (let i = 0; i < r.N; i++) {
    if (!chosen(i)) continue;
    found.push(i);
    start[(r.agent[i] < 0 ? r.n : r.agent[i]) + 1]++;
  }
  for (let a = 0; a <= r.n; a++) start[a + 1] += start[a];
  const places = new Int32Array(found.length), next = start.slice();
  for (const i of found) places[next[r.agent[i] < 0 ? r.n : r.agent[i]]++] = i;
  return { start, places };
}

/** Times on the air of what had an end: sender, begin, end, and whether all, some or none of it was heard. */
function findAirtime(r) {
  r.airs = [];
  const { airtime, question, latency } = r.channel;
  if (!airtime) return;
  const { send, end, how, count } = r.messages;
  for (let m = 0; m < count; m++) {
    const before = r.airs[r.airs.length - 1];
    if (before?.send === send[m]) { before.bad ||= how[m] === COLLIDED; continue; }
    if (end[m] < 0 || how[m] === AWAY || (how[m] === LOST && r.outcome[end[m]] === 8)) continue;
    const length = r.version[send[m]] < 0 ? question : airtime;
    // A collision shows at the end of the airtime, an arrival after the latency.
    const arrives = how[m] === COLLIDED ? 0 : latency;
    const begin = arrives == null || r.channel.collision === "none" ? r.time[send[m]] : r.time[end[m]] - arrives - length;
    r.airs.push({ send: send[m], agent: r.agent[send[m]], begin, end: begin + length, bad: how[m] === COLLIDED });
  }
  r.airs.sort((one, other) => one.begin - other.begin);
}
