// Privacy: what flags mean, ε of each agent along the run, and the ledger by accountant.
function showPrivacy(study, r) {
  const notes = study.badges.map(([text, meaning, how]) => make("p", { class: `notice ${how}` }, make("b", { class: how }, text), `: ${meaning}.`));
  fill("flags", ...notes, ...(r?.lacking ? [make("p", { class: "notice warn" }, `No ε along the run: ${r.lacking}.`)] : []));
  if (!r) { $("spent").replaceChildren(make("p", { class: "quiet-text" }, "ε along the run needs recorded events (record: {events: true}).")); return; }
  showSpending(r);
  showLedger(r);
}

/** ε of each agent along the recorded replica, as claimed, with the budgets. */
function showSpending(r) {
  const counts = r.arrays["spent/count"], budget = r.arrays["agent/budget"];
  if (!counts) { $("spent").replaceChildren(make("p", { class: "quiet-text" }, "ε along the run is not known.")); return; }
  if (r.arrays["spent/epsilon"].some((value) => value === Infinity)) { $("spent").replaceChildren(make("p", { class: "notice" }, "No noise was added: every release costs an infinite ε.")); return; }
  $("spent-title").textContent = `ε spent along the run: replica ${r.replica} of cell ${r.cell}, claimed, by the accountant ${r.accountant}`;
  const groups = [...new Set(r.groups.filter(Boolean))], few = r.n <= 8, grouped = !few && groups.length > 1 && groups.length <= 8;
  const colour = (agent) => (few ? theme.line(agent).stroke : grouped ? theme.line(groups.indexOf(r.groups[agent])).stroke : theme.names.arrived);
  const draw = () => {
    const chosen = [...(player.view?.agents ?? [])].filter((agent) => agent >= 0), lines = [];
    const curve = (agent) => {
      const { start, places } = r.releases, before = r.arrays["before/releases"][agent], x = [r.first ? r.time[0] : 0], y = [epsilonOf(r, agent, before)], all = start[agent + 1] - start[agent], stride = Math.max(1, Math.ceil(all / 120));
      for (let i = 0; i < all; i++) if (i % stride === 0 || i === all - 1) { x.push(r.time[places[start[agent] + i]]); y.push(epsilonOf(r, agent, before + i + 1)); }
      x.push(r.until);
      y.push(y[y.length - 1]);
      return { x, y };
    };
    // Of many agents every k-th, and always those that are selected.
    const stride = Math.ceil(r.n / 40);
    for (let agent = 0; agent < r.n; agent += stride) if (!chosen.includes(agent)) lines.push({ label: r.name(agent), ...curve(agent), stroke: few ? colour(agent) : `${colour(agent)}66`, width: few ? 1.5 : 1 });
    const marked = chosen.slice(0, 8).map((agent, place) => [few || grouped ? colour(agent) : theme.line(place).stroke, agent]);
    for (const [stroke, agent] of marked) lines.push({ label: r.name(agent), ...curve(agent), stroke, width: 3 });
    const limits = [...new Set([...budget].filter(Number.isFinite))];
    if (limits.length <= 4) for (const limit of limits) lines.push({ label: `budget ${show(limit)}`, x: [0, r.end], y: [limit, limit], stroke: theme.names.bad, dash: [6, 4], width: 1.5 });
    curves("spent", lines, { x: "simulated time (mean clock periods)", y: "ε spent", steps: true });
    const each = stride > 1 ? `one agent in ${stride}` : "an agent each";
    const names = few ? Array.from({ length: r.n }, (_, agent) => [colour(agent), r.name(agent), "line"]) : grouped ? groups.map((group, i) => [theme.line(i).stroke, group, "line"]) : [[theme.names.arrived, each, "line"]];
    key("spent-key", [...names, ...(grouped ? [["transparent", each]] : []), [theme.names.bad, "budget", "line"], ...(few ? [] : marked.map(([stroke, agent]) => [stroke, `selected: ${r.name(agent)}`, "line"]))]);
  };
  select.listeners.push(draw);
  theme.changed.push(draw);
  draw();
}

/** A row per agent: releases, budget, and ε by each accountant. */
function showLedger(r) {
  const known = (name) => r.arrays[`agent/${name}`].some((value) => (name === "wasted" ? value > 0 : !Number.isNaN(value)));
  const columns = r.columns.filter(({ name }) => (["releases", "wasted", "spent_at", "budget"].includes(name) || name.startsWith("epsilon_")) && known(name));
  const rows = Array.from({ length: r.n }, (_, agent) => agent);
  const value = (name) => (agent) => r.arrays[`agent/${name}`][agent];
  const redraw = sortable($("ledger"), [{ label: "agent", text: true, of: r.name }, ...columns.map((column) => ({ label: column.label, of: value(column.name), class: column.name.startsWith("epsilon_") ? (spent) => (spent === Infinity ? "flag" : "") : undefined }))], rows, { label: "Privacy of each agent", act: (agent, event) => select.toggle(agent, event.shiftKey || event.ctrlKey), chosen: (agent) => player.view?.agents.has(agent) });
  select.listeners.push(redraw);
}
