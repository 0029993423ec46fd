// Space and time: a lane per agent (or per several), time to the right. Few events are drawn each, many are counted.
const MOST_EVENTS_DRAWN = 2500, MOST_MESSAGES_DRAWN = 3000;
const lanes = { rows: 0, cached: "" };

/** How agents share the rows: the learner first where there is one, then the agents, several to a row if need be. */
lanes.plan = (r, width, height) => {
  const left = width < 520 ? 64 : 104, right = width - 8, bottom = height - 22;
  const top = 6 + (medium.is(r) ? 30 : 0), room = bottom - top, most = Math.max(1, Math.floor(room / 3));
  const people = r.n + (r.star ? 1 : 0), per = Math.ceil(people / most), rows = Math.ceil(people / per);
  const step = Math.min(room / rows, 60);
  // The learner is row 0 of a star.
  const rowOf = (agent) => Math.floor((agent + (r.star ? 1 : 0)) / per);
  return { left, right, top, bottom: top + rows * step, axis: bottom, step, per, rows, rowOf, y: (agent) => top + (rowOf(agent) + 0.5) * step };
};

lanes.draw = (r, view) => {
  const { c, width, height } = prepare($("lanes")), names = theme.names, plan = (lanes.now = lanes.plan(r, width, height));
  const { left, right, top, bottom } = plan, x = (lanes.x = (time) => left + ((time - view.t0) / (view.t1 - view.t0)) * (right - left));
  const first = countUpTo(r.time, view.t0, 0, r.N, true), stop = countUpTo(r.time, view.t1);
  c.save();
  c.beginPath();
  c.rect(left, 0, right - left, height);
  c.clip();
  lanes.bands(r, view, c, x, top, bottom);
  lanes.absences(r, view, c, x, plan);
  if (medium.is(r)) medium.draw(r, view, c, x, left, right, 4, 24);
  view.dense = stop - first > MOST_EVENTS_DRAWN;
  if (view.dense) lanes.density(r, view, c, plan, first, stop);
  else lanes.detail(r, view, c, x, plan, first, stop);
  lanes.chain(r, view, c, x, plan);
  c.restore();
  lanes.labels(r, view, c, plan);
  timeAxis(c, x, view.t0, view.t1, left, right, plan.axis);
  if (view.t >= view.t0 && view.t <= view.t1) {
    c.strokeStyle = names.ink;
    c.lineWidth = 1.5;
    line(c, x(view.t), 0, x(view.t), plan.axis);
    c.lineWidth = 1;
  }
  lanes.key(r, view);
};

lanes.labels = (r, view, c, plan) => {
  c.textAlign = "right";
  c.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(11 / plan.step));
  for (let row = 0; row < plan.rows; row++) {
    const agent = row * plan.per - (r.star ? 1 : 0), chosen = view.agents.has(agent);
    if (row % every && !chosen) continue;
    c.fillStyle = chosen ? theme.names.accent : theme.names.soft;
    c.font = `${chosen ? "bold " : ""}11px system-ui, sans-serif`;
    c.fillText(fitted(c, r.name(agent), plan.left - 8), plan.left - 6, plan.top + (row + 0.5) * plan.step);
  }
  c.font = "11px system-ui, sans-serif";
  c.fillStyle = theme.names.soft;
  if (medium.is(r)) c.fillText("medium", plan.left - 6, 16);
};

/** Rounds, from the query to the deadline. */
lanes.bands = (r, view, c, x, top, bottom) => {
  const begins = r.arrays["round/begin"], ends = r.arrays["round/end"];
  const first = Math.max(countUpTo(begins, view.t0) - 1, 0), stop = countUpTo(begins, view.t1);
  if (!begins.length || stop - first > 250) return;
  for (let i = first; i < stop; i++) {
    c.fillStyle = theme.names.band;
    box(c, x(begins[i]), top, Math.max(x(ends[i]) - x(begins[i]), 1), bottom - top);
    c.strokeStyle = theme.names.soft;
    c.globalAlpha = 0.6;
    line(c, x(ends[i]), top, x(ends[i]), bottom);
    c.globalAlpha = 1;
  }
};

lanes.absences = (r, view, c, x, plan) => {
  const who = r.arrays["away/agent"], begin = r.arrays["away/begin"], end = r.arrays["away/end"];
  c.fillStyle = theme.names.away;
  c.globalAlpha = plan.per > 1 ? 0.5 / Math.sqrt(plan.per) : 0.9;
  let drawn = 0;
  for (let i = 0; i < who.length && drawn < 4000; i++) {
    if (end[i] < view.t0 || begin[i] > view.t1 || (who[i] < 0 && !r.star)) continue;
    box(c, x(begin[i]), plan.y(who[i]) - plan.step / 2 + 0.5, Math.max(x(end[i]) - x(begin[i]), 1), Math.max(plan.step - 1, 1));
    drawn++;
  }
  c.globalAlpha = 1;
};

/** Every event as a mark, every message as a line. */
lanes.detail = (r, view, c, x, plan, first, stop) => {
  const names = theme.names, colours = HOW(), size = Math.min(Math.max(plan.step * 0.22, 1.6), 4.5);
  const crowd = stop - first, faint = crowd > 800 ? 0.35 : crowd > 250 ? 0.6 : 0.85;
  c.strokeStyle = names.faint;
  if (plan.step > 5) for (let row = 0; row < plan.rows; row++) line(c, plan.left, plan.top + (row + 0.5) * plan.step, plan.right, plan.top + (row + 0.5) * plan.step);
  c.fillStyle = names.compute;
  for (const work of r.works) if (work.end >= view.t0 && work.begin <= view.t1) box(c, x(work.begin), plan.y(work.agent) - plan.step * 0.28, Math.max(x(work.end) - x(work.begin), 1), plan.step * 0.56);
  for (let i = airsFrom(r, view.t0 - r.channel.airtime), drawn = 0; i < r.airs.length && r.airs[i].begin <= view.t1 && drawn < 1500; i++, drawn++) {
    c.fillStyle = r.airs[i].bad ? names.collided : names.air;
    box(c, x(r.airs[i].begin), plan.y(r.airs[i].agent) - plan.step * 0.2, Math.max(x(r.airs[i].end) - x(r.airs[i].begin), 1), plan.step * 0.4);
  }
  let drawn = 0;
  eachMessage(r, view.t0, view.t1, (send, end, how) => {
    if (!view.shows(send, end, how)) return true;
    const to = end >= 0 ? r.agent[end] : r.peer[send];
    if (to < LEARNER || (how === TRAVELS && drawn > 500)) return true;
    const x0 = x(r.time[send]), x1 = end >= 0 ? x(r.time[end]) : plan.right, y0 = plan.y(r.agent[send]), y1 = plan.y(to);
    c.strokeStyle = colours[how];
    c.globalAlpha = how === ARRIVED || how === TRAVELS ? faint : 1;
    c.lineWidth = how === ARRIVED || how === TRAVELS ? 1 : 1.6;
    c.setLineDash(how === AWAY ? [3, 3] : []);
    line(c, x0, y0, x1, y1);
    if (how === ARRIVED && crowd < 600 && end >= 0) arrow(c, x0, y0, x1, y1);
    return ++drawn < MOST_MESSAGES_DRAWN;
  });
  c.setLineDash([]);
  c.globalAlpha = 1;
  for (let i = first; i < stop; i++) {
    if (!view.showsEvent(i)) continue;
    const kind = r.kind[i], px = x(r.time[i]), y = plan.y(Math.max(r.agent[i], LEARNER));
    if (kind === DROP) {
      c.strokeStyle = r.outcome[i] === COLLISION ? names.collided : r.outcome[i] === OFFLINE ? names.offline : r.outcome[i] === SUPERSEDED ? names.late : names.lost;
      cross(c, px, y, size);
    } else if (kind === COMMIT) { c.fillStyle = names.update; box(c, px - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6); }
    else if (kind === RETRY) { c.fillStyle = names.lost; dot(c, px, y, size * 0.8); }
    else if (kind === WAKE && r.outcome[i] !== OK) { c.fillStyle = names.late; dot(c, px, y, size * 0.8); }
    else if (kind === WAKE && crowd < 1200) { c.strokeStyle = names.wake; line(c, px, y - size, px, y + size); }
    if (r.makes[i]) { c.fillStyle = names.release; dot(c, px, y, size * 0.75); }
  }
};

function arrow(c, x0, y0, x1, y1) {
  const far = Math.hypot(x1 - x0, y1 - y0);
  if (far < 12) return;
  const dx = (x1 - x0) / far, dy = (y1 - y0) / far;
  c.fillStyle = c.strokeStyle;
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x1 - 6 * dx - 3 * dy, y1 - 6 * dy + 3 * dx);
  c.lineTo(x1 - 6 * dx + 3 * dy, y1 - 6 * dy - 3 * dx);
  c.fill();
}

/** Counts of events by lane and moment as one picture: the darker, the more; failures in their colours. */
lanes.density = (r, view, c, plan, first, stop) => {
  const columns = Math.max(1, Math.min(400, Math.floor((plan.right - plan.left) / 2)));
  const text = [first, stop, view.t0, view.t1, columns, plan.rows, view.filter, document.documentElement.dataset.scheme].join("|");
  if (lanes.cached !== text) {
    lanes.cached = text;
    const scale = columns / (view.t1 - view.t0), cells = plan.rows * columns;
    const all = new Uint32Array(cells), collided = new Uint32Array(cells), lost = new Uint32Array(cells), missed = new Uint32Array(cells);
    for (let i = first; i < stop; i++) {
      if (r.agent[i] < LEARNER || !view.showsEvent(i)) continue;
      const cell = plan.rowOf(r.agent[i]) * columns + Math.min(columns - 1, Math.max(0, Math.floor((r.time[i] - view.t0) * scale)));
      all[cell]++;
      if (r.kind[i] === DROP) (r.outcome[i] === COLLISION ? collided : r.outcome[i] === OFFLINE ? missed : lost)[cell]++;
    }
    let most = 1;
    for (const count of all) if (count > most) most = count;
    const picture = new ImageData(columns, plan.rows), rgb = (name) => [1, 3, 5].map((at) => parseInt(theme.names[name].slice(at, at + 2), 16));
    const tones = { arrived: rgb("arrived"), collided: rgb("collided"), lost: rgb("lost"), offline: rgb("offline") };
    for (let cell = 0; cell < cells; cell++) {
      if (!all[cell]) continue;
      // Failures are shown where they are a tenth of what happened.
      const tone = collided[cell] * 10 > all[cell] ? tones.collided : lost[cell] * 10 > all[cell] ? tones.lost : missed[cell] * 10 > all[cell] ? tones.offline : tones.arrived;
      picture.data.set([...tone, 60 + Math.round((195 * Math.log1p(all[cell])) / Math.log1p(most))], 4 * cell);
    }
    lanes.picture = new OffscreenCanvas(columns, plan.rows);
    lanes.picture.getContext("2d").putImageData(picture, 0, 0);
  }
  c.imageSmoothingEnabled = false;
  c.drawImage(lanes.picture, plan.left, plan.top, plan.right - plan.left, plan.rows * plan.step);
  drawing.marks++;
};

/** The chosen event with its causes and consequences, above everything else. */
lanes.chain = (r, view, c, x, plan) => {
  if (view.event == null) return;
  const names = theme.names;
  c.strokeStyle = c.fillStyle = names.accent;
  c.lineWidth = 2.5;
  for (const i of view.chain) {
    const cause = r.cause[i];
    if (cause >= 0 && view.chain.has(cause)) line(c, x(r.time[cause]), plan.y(Math.max(r.agent[cause], LEARNER)), x(r.time[i]), plan.y(Math.max(r.agent[i], LEARNER)));
    dot(c, x(r.time[i]), plan.y(Math.max(r.agent[i], LEARNER)), i === view.event ? 6 : 3.5);
  }
  c.lineWidth = 1;
};

/** The event that is nearest to a place, if one is near; and the agent of the lane. */
lanes.find = (r, view, px, py) => {
  const plan = lanes.now, row = Math.floor((py - plan.top) / plan.step), agent = row * plan.per - (r.star ? 1 : 0);
  const lane = row >= 0 && row < plan.rows && agent < r.n ? agent : null;
  const time = view.t0 + ((px - plan.left) / (plan.right - plan.left)) * (view.t1 - view.t0);
  let event = null, least = 14 ** 2;
  if (!view.dense && px >= plan.left) {
    const width = (view.t1 - view.t0) * (16 / (plan.right - plan.left));
    for (let i = countUpTo(r.time, time - width, 0, r.N, true); i < r.N && r.time[i] <= time + width; i++) {
      if (!view.showsEvent(i)) continue;
      const far = (lanes.x(r.time[i]) - px) ** 2 + (plan.y(Math.max(r.agent[i], LEARNER)) - py) ** 2;
      if (far < least) [least, event] = [far, i];
    }
  }
  return { event, lane, time, onLabel: px < plan.left };
};

lanes.key = (r, view) => {
  const text = `${view.dense}|${document.documentElement.dataset.scheme}`;
  if (lanes.keyed === text) return;
  lanes.keyed = text;
  const names = theme.names, has = (kind) => r.kind.includes(kind);
  const away = r.arrays["away/agent"].length ? [[names.away, "offline"]] : [];
  const refused = r.kind.some((kind, i) => kind === WAKE && r.outcome[i] !== OK) ? [[names.late, "wakes, but must wait or is refused", "round"]] : [];
  const rounds = r.arrays["round/begin"].length ? [[names.band, "round"]] : [];
  key("lanes-key", view.dense ? [[names.arrived, "events: the stronger, the more (zoom in for each one)"], ...failures(r), ...away]
    : [[names.arrived, "message", "line"], ...failures(r), [names.update, "update"], [names.release, "release", "round"], ...refused, ...(r.isLate.includes(1) || r.outcome.includes(SUPERSEDED) ? [[names.late, "too late"]] : []), ...(has(BEGIN) ? [[names.compute, "computing"]] : []), ...(r.airs.length ? [[names.air, "on the air"]] : []), ...away, ...rounds]);
};
