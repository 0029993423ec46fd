// Agents of the recorded replica: how a value is spread over them, what it goes with, and a table; all linked by selection.
function showAgents(r) {
  if (!r) {
    $("people").hidden = true;
    $("agentless").hidden = false;
    $("agentless").textContent = "What each agent did is read from events. Set record: {events: true} in the scenario, and run it again.";
    return;
  }
  const columns = r.columns.filter((column) => !column.name.startsWith("epsilon_basic")), values = (name) => r.arrays[`agent/${name}`];
  const first = columns.find((column) => column.metric)?.name ?? "updates", varies = (name) => values(name)?.some((value) => value !== values(name)[0]);
  const against = ["records", "degree", "away", "sent"].find(varies) ?? "releases";
  options($("agent-value"), columns.map((column) => [column.name, column.label]), first);
  options($("agent-against"), columns.map((column) => [column.name, column.label]), against);
  const label = (name) => columns.find((column) => column.name === name)?.label ?? name;
  const chosen = (agent) => player.view.agents.has(agent), act = (agent, event) => select.toggle(agent, event.shiftKey || event.ctrlKey || event.metaKey);
  const draw = () => {
    const name = $("agent-value").value, other = $("agent-against").value, mine = values(name), theirs = values(other);
    const sorted = [...mine].filter(Number.isFinite).sort((a, b) => a - b), stride = Math.max(1, Math.floor(sorted.length / 400));
    const kept = sorted.map((value, i) => [value, (i + 1) / sorted.length]).filter((_, i) => i % stride === 0 || i === sorted.length - 1);
    const picks = [...player.view.agents].filter((agent) => agent >= 0 && Number.isFinite(mine[agent])).slice(0, 8);
    const marks = picks.map((agent, place) => ({ label: r.name(agent), x: [mine[agent]], y: [countUpTo(sorted, mine[agent]) / sorted.length], stroke: theme.line(place + 1).stroke, width: 2 }));
    curves("ecdf", [{ label: "share of agents", x: kept.map(([value]) => value), y: kept.map(([, share]) => share), stroke: theme.names.arrived }, ...marks], { x: label(name), y: "share of agents", steps: true });
    $("scatter-title").textContent = `${label(name)} against ${label(other)}`;
    const every = Math.ceil(r.n / 5000), points = [];
    for (let agent = 0; agent < r.n; agent++) if (agent % every === 0 || chosen(agent)) points.push({ x: theirs[agent], y: mine[agent], label: r.name(agent), agent });
    scatter("scatter", points, { x: label(other), y: label(name), labels: true, act: (point, event) => act(point.agent, event), chosen: (point) => chosen(point.agent) });
  };
  $("agent-value").addEventListener("change", draw);
  $("agent-against").addEventListener("change", draw);
  select.listeners.push(draw);
  draw();
  const groups = r.groups.some(Boolean) ? [{ label: "group", text: true, of: (agent) => r.groups[agent] }] : [];
  const percent = (value) => `${show(100 * value)} %`;
  const shown = columns.filter((column) => column.metric || column.name === "records" || [...(values(column.name) ?? [])].some((value) => value !== 0 && !Number.isNaN(value)));
  const worst = shown.find((column) => column.name === "updates");
  const table = [{ label: "agent", text: true, of: r.name }, ...groups, ...shown.map((column) => ({ label: column.label, of: (agent) => values(column.name)[agent], show: column.name === "away" ? percent : show }))];
  const sort = worst ? [table.find((column) => column.label === worst.label), false] : null;
  const redraw = sortable($("agent-table"), table, Array.from({ length: r.n }, (_, agent) => agent), { sort, act, chosen, label: "Agents" });
  select.listeners.push(redraw);
}
