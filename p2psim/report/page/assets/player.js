// The player: time, selection, filters and keys, and the views that follow them.
const player = { view: null, frames: 0 };
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30];

player.open = (r) => {
  const view = (player.view = {
    r, k: 0, t: 0, t0: 0, t1: r.end, playing: false, speed: 1, event: null, chain: new Set(), agents: new Set(), filter: "|", only: null, kind: "all",
    measures: network.measures(r), metrics: strip.metrics(r),
    shows: (send, end, how) => (view.only == null || r.agent[send] === view.only || (end >= 0 && r.agent[end] === view.only)) && (view.kind === "all" || view.kind === "messages" || (view.kind === "failures" && how !== ARRIVED && how !== TRAVELS)),
    showsEvent: (i) => (view.only == null || r.agent[i] === view.only || r.peer[i] === view.only) && player.kinds[view.kind][1](r, i),
  });
  view.measure = view.measures[0];
  view.metric = view.metrics[0] ?? null;
  view.t0 = r.N && r.first ? r.time[0] : 0;
  view.t1 = Math.max(r.until, view.t0 + 1e-9);
  view.t = r.N ? r.time[0] : 0;
  view.pace = (view.t1 - view.t0) / 30;
  $("stage").hidden = false;
  player.controls(r, view);
  player.canvases(r, view);
  player.fromHash(r, view);
  addEventListener("keydown", (event) => player.press(r, view, event));
  addEventListener("hashchange", () => { if (location.hash !== player.hash && /[#&][kt]=/.test(location.hash)) { player.fromHash(r, view); player.update(); } });
  new ResizeObserver(player.request).observe($("stage"));
  theme.changed.push(() => { network.keyed = lanes.keyed = ""; strip.key(r); player.request(); });
  strip.key(r);
  player.update();
};

player.kinds = {
  all: ["all events", () => true],
  messages: ["messages", (r, i) => [SEND, DELIVER, DROP, RETRY].includes(r.kind[i])],
  failures: ["failures", (r, i) => r.kind[i] === DROP || r.isLate[i] === 1],
  updates: ["updates and releases", (r, i) => r.kind[i] === COMMIT || r.makes[i] === 1],
  presence: ["who comes and goes", (r, i) => r.kind[i] === JOIN || r.kind[i] === LEAVE],
};

player.controls = (r, view) => {
  options($("speed"), SPEEDS.map((speed) => [speed, `× ${speed}`]), 1);
  options($("measure"), view.measures.map((measure, i) => [i, measure.label]), 0);
  options($("metric"), view.metrics.map((metric, i) => [i, metric.label]), 0);
  options($("of-kind"), Object.entries(player.kinds).map(([name, [text]]) => [name, text]), "all");
  const listed = Array.from({ length: Math.min(r.n, 2000) }, (_, agent) => [agent, r.name(agent)]);
  options($("of-agent"), [["", "all"], ...(r.star ? [[LEARNER, "learner"]] : []), ...listed], "");
  $("metric").disabled = !view.metrics.length;
  const on = (id, type, act) => $(id).addEventListener(type, act);
  on("play", "click", () => player.toggle());
  on("back", "click", () => player.step(-1));
  on("forth", "click", () => player.step(1));
  on("speed", "change", () => { view.speed = Number($("speed").value); });
  on("measure", "change", () => { view.measure = view.measures[$("measure").value]; player.request(); });
  on("metric", "change", () => { view.metric = view.metrics[$("metric").value]; player.request(); });
  const filtered = () => {
    view.only = $("of-agent").value === "" ? null : Number($("of-agent").value);
    view.kind = $("of-kind").value;
    view.filter = `${view.only}|${view.kind}`;
    player.request();
  };
  on("of-agent", "change", filtered);
  on("of-kind", "change", filtered);
  on("in", "click", () => player.zoom(0.5));
  on("out", "click", () => player.zoom(2));
  on("all", "click", () => player.whole());
  on("near", "click", () => player.near(view.k));
  $("scrub").max = Math.max(r.N - 1, 0);
  on("scrub", "input", () => player.seek(Number($("scrub").value)));
  for (const button of document.querySelectorAll("[data-jump]")) {
    const places = r.jumps[button.dataset.jump];
    button.disabled = !places.length;
    button.append(` (${places.length.toLocaleString("en")})`);
    button.addEventListener("click", () => player.jump(button.dataset.jump));
  }
};

player.canvases = (r, view) => {
  const at = (event) => { const frame = event.target.getBoundingClientRect(); return [event.clientX - frame.left, event.clientY - frame.top]; };
  $("network").addEventListener("click", (event) => {
    const agent = network.find(...at(event));
    if (agent != null) select.toggle(agent, event.shiftKey || event.ctrlKey || event.metaKey); else select.none();
  });
  $("network").addEventListener("pointermove", (event) => {
    const agent = network.find(...at(event));
    if (agent == null) tip.hide(); else tip.show(`${r.name(agent)}: ${view.measure.label} ${show(view.measure.of(stateAt(r, view.k), agent))}`, event.clientX, event.clientY);
  });
  for (const id of ["network", "lanes"]) $(id).addEventListener("pointerleave", tip.hide);
  let drag = null;
  $("lanes").addEventListener("pointerdown", (event) => { drag = { x: event.clientX, t0: view.t0, t1: view.t1, moved: false }; });
  addEventListener("pointerup", (event) => {
    if (drag && !drag.moved && event.target === $("lanes")) {
      const found = lanes.find(r, view, ...at(event));
      if (found.onLabel && found.lane != null) select.toggle(found.lane, event.shiftKey || event.ctrlKey || event.metaKey);
      else if (found.event != null) player.choose(found.event);
      else if (!found.onLabel) { player.clear(); player.seekTime(found.time); }
    }
    drag = null;
  });
  $("lanes").addEventListener("pointermove", (event) => {
    if (drag) {
      const moved = event.clientX - drag.x, scale = (drag.t1 - drag.t0) / (lanes.now.right - lanes.now.left);
      if (Math.abs(moved) > 4) drag.moved = true;
      if (drag.moved) player.window(drag.t0 - moved * scale, drag.t1 - moved * scale);
      return;
    }
    const found = lanes.find(r, view, ...at(event));
    if (found.event != null) tip.show(`${show(r.time[found.event])}: ${describe(r, found.event)}`, event.clientX, event.clientY); else tip.hide();
  });
  $("lanes").addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    player.zoom(event.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });
  let scrubs = false;
  const scrub = (event) => { if (scrubs) player.seekTime(strip.time(at({ target: $("strip"), clientX: event.clientX, clientY: event.clientY })[0])); };
  $("strip").addEventListener("pointerdown", (event) => { scrubs = true; $("strip").setPointerCapture(event.pointerId); scrub(event); });
  $("strip").addEventListener("pointermove", scrub);
  $("strip").addEventListener("pointerup", () => { scrubs = false; });
};

player.press = (r, view, event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input:not([type=range]), select, textarea, summary")) return;
  const onButton = event.target.closest("button, a, [role=row]"), big = event.shiftKey ? 100 : 1;
  const acts = {
    " ": () => player.toggle(), ArrowLeft: () => player.step(-big), ArrowRight: () => player.step(big), Home: () => player.seek(0), End: () => player.seek(r.N - 1),
    c: () => player.jump("collision"), d: () => player.jump("drop"), l: () => player.jump("departure"), b: () => player.jump("exhausted"),
    "+": () => player.zoom(0.5), "=": () => player.zoom(0.5), "-": () => player.zoom(2), 0: () => player.whole(), 1: () => player.near(view.k),
    "[": () => player.faster(-1), "]": () => player.faster(1), n: () => select.next(1), p: () => select.next(-1),
    Escape: () => { player.clear(); select.none(); },
  };
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  // What the focused element does itself stays with it.
  if (!acts[name] || (onButton && [" ", "Enter"].includes(name)) || event.target.closest(".scroll, pre")) return;
  event.preventDefault();
  acts[name]();
};

player.seek = (k) => {
  const { view } = player, { r } = view;
  if (!r.N) return;
  view.k = Math.min(Math.max(k, 0), r.N - 1);
  view.t = r.time[view.k];
  player.follow();
  player.update();
};

player.seekTime = (time) => {
  const { view } = player, { r } = view;
  view.t = Math.min(Math.max(time, r.N ? r.time[0] : 0), r.until);
  view.k = Math.max(countUpTo(r.time, view.t) - 1, 0);
  player.follow();
  player.update();
};

player.step = (count) => player.seek(player.view.k + count);

player.jump = (what) => {
  const { r, k } = player.view, places = r.jumps[what];
  if (!places.length) return;
  const next = places[countUpTo(places, k)] ?? places[0];
  player.view.playing = false;
  player.seek(next);
  player.choose(next);
};

/** Move the stretch that is shown so that the present moment is in it. */
player.follow = () => {
  const { view } = player, wide = view.t1 - view.t0;
  if (view.t < view.t0 || view.t > view.t1) {
    const from = view.playing ? view.t - wide * 0.1 : view.t - wide / 2;
    player.window(from, from + wide);
  }
};

player.window = (from, to) => {
  const { view } = player, wide = Math.min(to - from, view.r.end || 1);
  from = Math.min(Math.max(from, 0), Math.max((view.r.end || 1) - wide, 0));
  [view.t0, view.t1] = [from, from + wide];
  player.request();
};

player.zoom = (factor) => {
  const { view } = player, wide = Math.min(Math.max((view.t1 - view.t0) * factor, view.r.end * 1e-7), view.r.end || 1);
  const middle = view.t >= view.t0 && view.t <= view.t1 ? view.t : (view.t0 + view.t1) / 2;
  player.window(middle - wide / 2, middle + wide / 2);
  view.pace = wide / 12;
};

player.whole = () => { player.window(0, player.view.r.end || 1); player.view.pace = (player.view.t1 - player.view.t0) / 30; };

/** Show a stretch in which single events can be seen. */
player.near = (k) => {
  const { view } = player, { r } = view, before = r.time[Math.max(k - 120, 0)], after = r.time[Math.min(k + 120, r.N - 1)];
  const wide = Math.max(after - before, r.end * 1e-7);
  player.window(before - wide * 0.02, before + wide * 1.02);
  view.pace = wide / 12;
};

player.faster = (by) => {
  const place = Math.min(Math.max(SPEEDS.indexOf(player.view.speed) + by, 0), SPEEDS.length - 1);
  player.view.speed = SPEEDS[place];
  $("speed").value = SPEEDS[place];
};

player.toggle = () => {
  const { view } = player;
  view.playing = !view.playing;
  if (view.playing && view.k >= view.r.N - 1) player.seek(0);
  player.before = null;
  player.update();
  if (view.playing) requestAnimationFrame(player.tick);
};

player.tick = (now) => {
  const { view } = player, { r } = view;
  if (!view.playing) return;
  const passed = player.before == null ? 0 : Math.min(now - player.before, 200) / 1000;
  if (theme.still) {
    // Without motion: from event to event, twice a second.
    if (player.before == null || now - player.before > 500) { player.before = now; player.step(1); }
  } else {
    player.before = now;
    view.t = Math.min(view.t + passed * view.pace * view.speed, r.until);
    view.k = Math.max(countUpTo(r.time, view.t) - 1, 0);
    player.follow();
    player.update();
  }
  if (view.k >= r.N - 1) { view.playing = false; player.update(); } else requestAnimationFrame(player.tick);
};

player.choose = (event) => {
  const { view } = player;
  view.event = event;
  view.chain = chainOf(view.r, event);
  view.playing = false;
  if (view.dense) player.near(event);
  player.seek(event);
};

player.clear = () => { player.view.event = null; player.view.chain = new Set(); player.update(); };

/** Have everything drawn at the next frame. */
player.request = () => {
  if (player.waits || !player.view) return;
  player.waits = true;
  requestAnimationFrame(() => { player.waits = false; player.frame(); });
};

player.update = () => { player.request(); };

/** Draw all views now; returns the milliseconds that it took. */
player.frame = () => {
  const began = performance.now(), { view } = player, { r } = view, state = stateAt(r, view.k);
  drawing.marks = 0;
  network.draw(r, view, state);
  lanes.draw(r, view);
  strip.draw(r, view);
  player.words(r, view, state);
  return performance.now() - began;
};

player.words = (r, view, state) => {
  $("play").textContent = view.playing ? "❚❚ Pause" : "▶ Play";
  $("scrub").value = view.k;
  $("scrub").setAttribute("aria-valuetext", r.N ? `event ${r.first + view.k}, time ${show(r.time[view.k])}` : "");
  $("now").textContent = r.N ? `time ${show(view.t)} · event ${(r.first + view.k).toLocaleString("en")} of ${r.events.all.toLocaleString("en")}: ${describe(r, view.k)}` : "";
  const finite = state.epsilon.filter((value) => Number.isFinite(value)), most = finite.length ? range(finite)[1] : null;
  const facts = [["agents online", `${state.online} of ${r.n}`], ["in flight", show(state.inFlight)], ["delivered", show(state.delivered)], ["collided", show(state.collided)]];
  if (r.star) facts.push(["learner", `version ${state.learnerVersion}${state.learnerPresent ? "" : ", offline"}`], ["waiting for it", show(state.queue)]);
  if (r.accountant) facts.push(["largest ε spent", state.epsilon.includes(Infinity) ? "∞ (no noise)" : show(most)], ["budgets exhausted", `${state.exhausted} of ${r.n}`]);
  fill("moment", ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  const text = `${view.event}|${[...view.agents]}|${view.event == null && view.agents.size ? view.k : ""}`;
  if (text !== player.told) { player.told = text; player.inspect(r, view, state); }
  player.keepHash(r, view);
};

/** What is selected, in words. */
player.inspect = (r, view, state) => {
  const lines = [];
  for (const agent of [...view.agents].slice(0, 6)) {
    if (agent < 0) { lines.push(make("p", {}, make("b", {}, "learner"), ` version ${state.learnerVersion}`)); continue; }
    const of = (name) => r.arrays[`agent/${name}`]?.[agent];
    const epsilon = state.epsilon[agent] == null ? "" : `, ε ${show(state.epsilon[agent])} of ${show(of("budget"))}`;
    lines.push(make("p", {}, make("b", {}, r.name(agent)), `${r.groups[agent] ? ` (${r.groups[agent]})` : ""} ${state.present[agent] ? "online" : "offline"}; ${state.releases[agent]} releases so far${epsilon}; in the whole run ${show(of("updates"))} updates, ${show(of("collided"))} collided, ${show(of("lost"))} lost, offline ${show(100 * of("away"))} % of the time`));
  }
  if (view.event != null) {
    const causes = [];
    for (let i = view.event; i >= 0 && causes.length < 12; i = r.cause[i]) causes.unshift(i);
    const after = [...view.chain].filter((i) => i > view.event).sort((one, other) => one - other).slice(0, 8);
    for (const i of [...causes, ...after]) {
      const text = `${show(r.time[i])} ${describe(r, i)}`;
      lines.push(make("p", {}, `${(r.first + i).toLocaleString("en")} · `, i === view.event ? make("b", {}, text) : make("button", { type: "button", class: "link", onclick: () => player.choose(i) }, text)));
    }
  }
  fill("chosen", ...(lines.length ? lines : [make("p", {}, "Nothing. Click a mark for the chain of its causes, or an agent's node or name to follow it in all views.")]));
};

player.keepHash = (r, view) => {
  const parts = [`k=${r.first + view.k}`];
  if (view.agents.size) parts.push(`agent=${[...view.agents].join(",")}`);
  if (view.event != null) parts.push(`event=${r.first + view.event}`);
  const hash = `#${parts.join("&")}`;
  if (view.playing || hash === player.hash || (player.hash == null && view.k === 0 && !view.agents.size && view.event == null)) return;
  player.hash = hash;
  clearTimeout(player.later);
  // Not at every step: browsers refuse more than some in a second. Inside another page there may be no address to keep.
  player.later = setTimeout(() => { try { history.replaceState(null, "", hash); } catch { player.later = 0; } }, 250);
};

player.fromHash = (r, view) => {
  const given = new URLSearchParams(location.hash.slice(1)), within = (text) => { const place = Number(text) - r.first; return Number.isInteger(place) && place >= 0 && place < r.N ? place : null; };
  if (given.has("agent")) view.agents = new Set(given.get("agent").split(",").map(Number).filter((agent) => Number.isInteger(agent) && agent >= LEARNER && agent < r.n));
  const event = given.has("event") ? within(given.get("event")) : null, k = given.has("k") ? within(given.get("k")) : null;
  if (event != null) { view.event = event; view.chain = chainOf(r, event); }
  if (given.has("t") && Number.isFinite(Number(given.get("t")))) player.seekTime(Number(given.get("t")));
  if (k ?? event) player.seek(k ?? event);
  if (event != null && r.N > MOST_EVENTS_DRAWN) player.near(event);
  if (view.agents.size) select.changed();
};

// Agents that are selected, in all views.
const select = { listeners: [] };
select.changed = () => { for (const listener of select.listeners) listener(player.view.agents); player.update(); };
select.toggle = (agent, more) => {
  const { agents } = player.view, had = agents.has(agent);
  if (!more) agents.clear();
  if (had) agents.delete(agent); else agents.add(agent);
  select.changed();
};
select.all = (agents) => { player.view.agents = new Set(agents); select.changed(); };
select.none = () => select.all([]);
select.next = (by) => { const { r, agents } = player.view, last = [...agents].pop() ?? (by > 0 ? -1 : r.n); select.all([(last + by + r.n) % r.n]); };
