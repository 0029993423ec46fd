// The page: decode, show, and what others may ask of it (window.p2psim).
function showSummary(study, r) {
  $("title").textContent = study.name;
  $("question").textContent = study.question;
  $("question").hidden = !study.question;
  fill("badges", ...study.badges.map(([text, meaning, how]) => make("li", { class: how, title: meaning }, text)));
  const facts = [["cells × replicas", `${study.cells.length} × ${study.replicas} (${show(study.simulations)} simulations)`], ["seed", String(study.seed)], ["made by", `p2psim ${study.made_by.p2psim ?? "unknown"}, Python ${study.made_by.python ?? "unknown"}`]];
  if (r) facts.push(["played", `replica ${r.replica} of cell ${r.cell}${study.cells.length > 1 ? `: ${study.cells[r.cell].label}` : ""}`], ["agents", `${show(r.n)}${r.star ? " and a learner" : `, ${show(r.links.all)} links${r.links.changing ? " that come and go" : ""}`}`], ["events", show(r.events.all)], ["ended at time", show(r.end)]);
  fill("facts", ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  if (r) fill("findings", ...r.findings.map((one) => make("article", { class: `finding ${one.tone}` }, make("h3", {}, one.title), make("p", {}, one.text), one.agents.length ? make("button", { type: "button", class: "quiet", onclick: () => { select.all(one.agents.slice(0, 50)); $("player").scrollIntoView(); } }, `Select ${one.agents.length === 1 ? "this agent" : "these agents"}`) : null)));
  fill("warnings", ...study.warnings.map((text) => make("p", { class: "notice warn" }, text)));
}

function showProvenance(study) {
  const verdict = study.verified;
  const text = verdict ? `${verdict.text}.` : "p2psim verify did not run on this folder. p2psim verify RUN, or p2psim report RUN --verify, recomputes it.";
  fill("verified", make("p", { class: `notice ${verdict?.wrong ? "bad" : ""}` }, text));
  const { libraries = {}, arithmetic = {}, ...rest } = study.made_by;
  const entries = [...Object.entries(rest).filter(([, value]) => typeof value === "string"), ...Object.entries(libraries), ["linear algebra", (arithmetic.blas ?? []).join(", ")], ["vector instructions", (arithmetic.simd ?? []).join(" ")], ["run folder", `format ${study.format}`]].filter(([, value]) => value);
  fill("made", ...entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
  fill("commands", ...study.commands.map((one) => make("p", {}, make("code", {}, one.arguments ? `p2psim ${one.arguments.join(" ")}` : "p2psim.run(…) in Python"), ` (p2psim ${one.p2psim}, ${one.ended})`)));
  $("scenario").textContent = study.scenario;
  sortable($("files"), [{ label: "file", text: true, of: (row) => row[0] }, { label: "bytes", of: (row) => row[1] }, { label: "SHA-256", text: true, of: (row) => row[2] }], study.files, { label: "Files" });
  $("licence").textContent = $("library").textContent.match(/\/\* uPlot\n([\s\S]*?)\*\//)?.[1] ?? "";
}

async function start() {
  const { plain, arrays } = await decode(), { study } = plain;
  theme.start();
  const r = plain.replica ? openRecording(plain.replica, arrays) : null;
  if (r) {
    const cut = r.N < r.events.all ? ` The page holds ${show(r.N)} of ${show(r.events.all)} events, from time ${show(r.time[0])} to ${show(r.time[r.N - 1])}; counts in the strip are of all. p2psim report RUN --from T --to T chooses others.` : "";
    $("played").textContent = `replica ${r.replica} of cell ${r.cell}`;
    $("unplayed").hidden = !cut;
    $("unplayed").textContent = cut.trim();
    player.open(r);
  } else {
    $("unplayed").hidden = false;
    $("unplayed").textContent = "Nothing to play: the run recorded no events. Set record: {events: true} in the scenario, and run it again.";
  }
  showSummary(study, r);
  showResults(study, arrays);
  showPrivacy(study, r);
  showAgents(r);
  showProvenance(study);
  startCharts();
  if (r?.N) player.frame();
  return { events: r?.N ?? 0, first: r?.first ?? 0 };
}

window.p2psim = {
  ready: start().catch((error) => {
    $("failure").hidden = false;
    $("failure").textContent = `This page could not be shown: ${error.message}`;
    throw error;
  }),
  /** The state after the present event. */
  state: () => ({ ...stateAt(player.view.r, player.view.k), selected: [...player.view.agents], event: player.view.event, window: [player.view.t0, player.view.t1] }),
  /** Go to the event of this number in the run. */
  seek: (seq) => { player.seek(seq - player.view.r.first); return window.p2psim.state(); },
  /** Show a stretch of time. */
  show: (from, to) => player.window(from, to),
  /** Draw now: milliseconds of work, and marks that were drawn. */
  frame: () => ({ milliseconds: player.frame(), marks: drawing.marks }),
};
