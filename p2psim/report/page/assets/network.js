// The network at the present moment: nodes by a measure, who is away, what is under way and what has just ended.
const MOST_HOPS = 1500;
const network = { places: [] };

/** What nodes can be coloured by: name, label, and values of all agents at a state. */
network.measures = (r) => {
  const found = [], own = [];
  r.own.forEach((each, number) => {
    const times = r.arrays[`own/${number}/time`], values = r.arrays[`own/${number}/value`], size = times.length;
    own.push({ name: `own/${number}`, label: each.label, reverse: !each.rises, range: range(values), of: (state, agent) => values[agent * size + Math.max(countUpTo(times, state.time) - 1, 0)] });
  });
  const spends = r.arrays["spent/count"] && r.columns.some((column) => column.name === "budget");
  if (spends) {
    const budget = r.arrays["agent/budget"];
    const finite = budget.some((value) => Number.isFinite(value));
    if (finite) found.push({ name: "spent", label: "ε spent, share of budget", range: [0, 1], of: (state, agent) => state.epsilon[agent] / budget[agent] });
  }
  const updates = r.arrays["agent/updates"];
  if (r.star) found.push({ name: "lag", label: "versions behind the learner", range: null, of: (state, agent) => state.lag[agent] });
  else found.push({ name: "versions", label: "updates so far", range: [0, Math.max(1, range(updates)[1])], of: (state, agent) => state.versions[agent] });
  for (const [name, label] of [["updates", "updates in the whole run"], ["away", "share of time offline"], ["records", "records"], ["degree", "neighbours"]]) {
    const values = r.arrays[`agent/${name}`];
    if (values && values.some((value) => value !== values[0])) found.push({ name, label, range: range(values), of: (state, agent) => values[agent] });
  }
  // What agents have learned says most where each has a model of its own.
  return r.star ? [...found, ...own] : [...own, ...found];
};

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (Number.isFinite(value)) { if (value < low) low = value; if (value > high) high = value; }
  return low <= high ? [low, high] : [0, 1];
}

network.draw = (r, view, state) => {
  const canvas = $("network"), { c, width, height } = prepare(canvas), names = theme.names;
  const side = Math.min(width, height), edge = r.n > 2000 ? 8 : Math.min(34, side * 0.09) + (r.n <= 40 ? 10 : 0);
  const place = (agent) => agent === LEARNER ? [width / 2, height / 2]
    : [(width - side) / 2 + edge + r.layout[2 * agent] * (side - 2 * edge), (height - side) / 2 + edge + r.layout[2 * agent + 1] * (side - 2 * edge)];
  const measure = view.measure, values = state.present.map((_, agent) => measure.of(state, agent));
  const [low, high] = measure.range ?? [0, Math.max(1, range(values)[1])];
  const shade = (value) => theme.shade(high > low ? (measure.reverse ? (high - value) / (high - low) : (value - low) / (high - low)) : 0.5);
  network.key(r, measure, low, high);
  if (r.n > 2000) { network.grid(r, view, state, c, width, height, values, shade); return; }
  network.places = Array.from({ length: r.n }, (_, agent) => place(agent));
  c.strokeStyle = names.line;
  c.globalAlpha = r.n > 200 ? 0.5 : 1;
  const a = r.arrays["link/a"], b = r.arrays["link/b"], from = r.arrays["link/begin"], to = r.arrays["link/end"];
  c.beginPath();
  for (let link = 0; link < a.length; link++) {
    if (from && !(from[link] <= state.time && state.time < to[link])) continue;
    c.moveTo(...network.places[a[link]]);
    c.lineTo(...network.places[b[link]]);
  }
  if (r.star) for (const [x, y] of network.places) { c.moveTo(width / 2, height / 2); c.lineTo(x, y); }
  c.stroke();
  drawing.marks++;
  c.globalAlpha = 1;
  network.hops(r, view, c, place);
  const size = Math.max(3, Math.min(13, (side * 0.42) / Math.sqrt(r.n))), labelled = r.n <= 40;
  for (let agent = 0; agent < r.n; agent++) {
    const [x, y] = network.places[agent], away = !state.present[agent];
    if (r.star && state.lag[agent] > 0) {
      // How far behind an owner is: a ring that becomes thicker.
      c.strokeStyle = names.late;
      c.lineWidth = Math.min(1 + 1.3 * Math.log2(1 + state.lag[agent]), 9);
      c.globalAlpha = away ? 0.3 : 0.8;
      c.beginPath(); c.arc(x, y, size + c.lineWidth / 2 + 1, 0, 2 * Math.PI); c.stroke();
      c.lineWidth = 1;
    }
    c.globalAlpha = away ? 0.25 : 1;
    c.fillStyle = shade(values[agent]);
    dot(c, x, y, size);
    c.globalAlpha = 1;
    const chosen = view.agents.has(agent), spent = r.limit[agent] >= 0 && state.releases[agent] >= r.limit[agent];
    c.strokeStyle = chosen ? names.accent : away ? names.offline : names.ink;
    c.lineWidth = chosen ? 3 : away ? 1.5 : 0.8;
    c.setLineDash(away && !chosen ? [3, 3] : []);
    c.beginPath(); c.arc(x, y, size + (chosen ? 3 : 0), 0, 2 * Math.PI); c.stroke();
    c.setLineDash([]);
    if (spent) { c.strokeStyle = names.bad; c.lineWidth = 2; line(c, x - size * 0.6, y - size * 0.6, x + size * 0.6, y + size * 0.6); line(c, x - size * 0.6, y + size * 0.6, x + size * 0.6, y - size * 0.6); }
    c.lineWidth = 1;
    if (labelled || chosen) network.label(c, r.name(agent), x, y, size, width, height);
  }
  if (r.star) network.learner(r, state, c, width / 2, height / 2);
};

network.label = (c, text, x, y, size, width, height) => {
  const dx = x - width / 2, dy = y - height / 2, far = Math.hypot(dx, dy) || 1;
  c.fillStyle = theme.names.ink;
  c.textBaseline = "middle";
  c.textAlign = Math.abs(dx) < far * 0.35 ? "center" : dx > 0 ? "left" : "right";
  const away = size + 12;
  write(c, text, x + (dx / far) * away, Math.min(Math.max(y + (dy / far) * away, 7), height - 7), width, 90);
};

network.learner = (r, state, c, x, y) => {
  const names = theme.names;
  c.globalAlpha = state.learnerPresent ? 1 : 0.3;
  c.fillStyle = names.ink;
  box(c, x - 13, y - 13, 26, 26);
  c.fillStyle = names.panel;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText("L", x, y);
  c.globalAlpha = 1;
  const version = `version ${state.learnerVersion}`, wide = c.measureText(version).width + 4;
  c.fillStyle = names.panel;
  box(c, x - wide / 2, y + 15, wide, 14);
  c.fillStyle = names.ink;
  c.textBaseline = "top";
  c.fillText(version, x, y + 17);
  // Its queue: a square for each owner that waits.
  c.fillStyle = names.late;
  for (let i = 0; i < Math.min(state.queue, 12); i++) box(c, x + 18 + 7 * i, y - 5, 5, 10);
  if (state.queue) { c.textAlign = "left"; c.fillText(`${state.queue} wait`, x + 18, y + 8); }
};

const HOW = () => [theme.names.arrived, theme.names.lost, theme.names.collided, theme.names.offline, theme.names.late, theme.names.arrived];

/** Messages under way, and those that ended a moment ago. */
network.hops = (r, view, c, place) => {
  const trail = (view.t1 - view.t0) / 60, colours = HOW();
  let drawn = 0;
  eachMessage(r, view.t - trail, view.t, (send, end, how, ends) => {
    if (!view.shows(send, end, how)) return true;
    const to = end >= 0 ? r.agent[end] : r.peer[send];
    if (to < LEARNER) return true;
    if (how === TRAVELS && r.time[send] < view.t - 50 * trail) return true;
    const [x0, y0] = place(r.agent[send]), [x1, y1] = place(to), moves = ends > view.t;
    const part = moves && Number.isFinite(ends) ? (view.t - r.time[send]) / (ends - r.time[send]) : moves ? 0.5 : 1;
    c.strokeStyle = c.fillStyle = colours[how];
    c.globalAlpha = moves ? 0.8 : Math.max(0.15, 1 - (view.t - ends) / trail);
    c.lineWidth = moves ? 1.2 : 2;
    const stop = how === ARRIVED || how === LATE || moves ? part : 0.82;
    line(c, x0, y0, x0 + (x1 - x0) * stop, y0 + (y1 - y0) * stop);
    if (moves) dot(c, x0 + (x1 - x0) * part, y0 + (y1 - y0) * part, 3.5);
    else if (how === COLLIDED || how === LOST || how === AWAY) cross(c, x0 + (x1 - x0) * stop, y0 + (y1 - y0) * stop, 5);
    return ++drawn < MOST_HOPS;
  });
  c.globalAlpha = 1;
  c.lineWidth = 1;
};

function cross(c, x, y, size) {
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(x - size, y - size); c.lineTo(x + size, y + size);
  c.moveTo(x - size, y + size); c.lineTo(x + size, y - size);
  c.stroke();
  drawing.marks++;
}

/** Very many agents: squares of several each, by their mean, paler where fewer are online. */
network.grid = (r, view, state, c, width, height, values, shade) => {
  const per = Math.ceil(r.n / 1600), cells = Math.ceil(r.n / per), across = Math.ceil(Math.sqrt(cells * (width / height)));
  const size = Math.min(width / across, height / Math.ceil(cells / across));
  network.places = [];
  for (let cell = 0; cell < cells; cell++) {
    let sum = 0, known = 0, online = 0, chosen = false;
    const last = Math.min(r.n, (cell + 1) * per);
    for (let agent = cell * per; agent < last; agent++) {
      if (Number.isFinite(values[agent])) { sum += values[agent]; known++; }
      online += state.present[agent];
      chosen ||= view.agents.has(agent);
    }
    const x = (cell % across) * size, y = Math.floor(cell / across) * size;
    c.globalAlpha = 0.2 + (0.8 * online) / (last - cell * per);
    c.fillStyle = shade(known ? sum / known : NaN);
    box(c, x + 0.5, y + 0.5, size - 1, size - 1);
    if (chosen) { c.globalAlpha = 1; c.strokeStyle = theme.names.accent; c.strokeRect(x, y, size, size); }
    for (let agent = cell * per; agent < last; agent++) network.places[agent] = [x + size / 2, y + size / 2];
  }
  c.globalAlpha = 1;
};

network.key = (r, measure, low, high) => {
  const text = `${measure.name}|${low}|${high}|${document.documentElement.dataset.scheme}`;
  if (network.keyed === text) return;
  network.keyed = text;
  const names = theme.names, per = r.n > 2000 ? [[names.away, `each square: ${Math.ceil(r.n / 1600)} agents, paler when offline`]] : [];
  const more = r.links.drawn || r.star || r.n > 2000 ? [] : [["transparent", `${show(r.links.all)} links, not drawn`]];
  const ring = r.star && r.n <= 2000 ? [[names.late, "ring: versions behind", "round"]] : [];
  const away = r.arrays["away/agent"].length ? [[names.away, "dashed: offline", "round"]] : [], spent = r.exhausted.length ? [[names.bad, "×: budget exhausted"]] : [];
  key("network-key", [...away, ...spent, ...ring, ...per, ...more]);
  const [left, right] = measure.reverse ? [high, low] : [low, high];
  $("network-key").prepend(make("span", {}, `${measure.label}: ${show(left)}`, make("i", { class: "ramp" }), show(right)));
};

/** The agent at a place of the canvas, if one is near. */
network.find = (x, y) => {
  let best = null, least = 22 ** 2;
  network.places.forEach(([px, py], agent) => {
    const far = (px - x) ** 2 + (py - y) ** 2;
    if (far < least) [least, best] = [far, agent];
  });
  return best;
};
