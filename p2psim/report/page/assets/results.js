// Results of the study: curves with selectors, the front of privacy and utility, a map of two swept keys, the table.
function showResults(study, arrays) {
  resultCurves(study, arrays);
  const { columns, rows, swept } = study.summary, entries = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  const number = (value) => (value === "∞" ? Infinity : value === "−∞" ? -Infinity : value);
  for (const row of entries) for (const name of ["median", "q25", "q75", "epsilon spent", "budget"]) row[name] = number(row[name]);
  const texts = new Set(columns.filter((name) => entries.some((row) => typeof row[name] === "string")));
  texts.delete("epsilon spent");
  texts.delete("budget");
  const bad = (value) => (/not_private|bound_violated|over_budget/.test(value) ? "wrap flag" : "wrap");
  sortable($("table"), columns.map((name) => ({ label: keyWord(study, name), text: texts.has(name), of: (row) => row[name], class: name === "flags" ? bad : undefined, show: name === "flags" ? (value) => value || "" : (value) => valueWord(study, name, value) })), entries, { label: "Last recorded values" });
  $("save").addEventListener("click", () => saveCsv(`${study.name}.csv`, columns, rows));
  figures();
  front(study, entries);
  heat(study, entries, swept);
}

/** Words of a swept key, and of one of its values; other columns keep theirs. */
function keyWord(study, name) { return study.summary.words[name]?.name ?? name; }
function valueWord(study, name, value) { return study.summary.words[name]?.values.find(([known]) => known === value)?.[1] ?? show(value); }

/**
 * The line of a cell: colour by the first swept key and dashes by the others, or the other way round, where a reader can tell them
 * apart; else by its place.
 */
function lineOfCell(study) {
  const { columns, rows, swept } = study.summary, at = (name) => columns.indexOf(name), cells = new Map(rows.map((row) => [row[at("cell")], row]));
  const values = (names) => [...new Set([...cells.values()].map((row) => names.map((name) => row[at(name)]).join("\n")))], place = (names, cell) => values(names).indexOf(names.map((name) => cells.get(cell)[at(name)]).join("\n"));
  const [first, ...others] = swept.filter((name) => values([name]).length > 1), rest = others.filter((name) => values([first, name]).length > values([first]).length);
  const fit = (colours, dashes) => values(colours).length <= 8 && values(dashes).length <= 3;
  const [colours, dashes] = !first ? [] : fit([first], rest) ? [[first], rest] : fit(rest, [first]) ? [rest, [first]] : [];
  return (cell, number) => (colours && cells.has(cell) ? theme.line(place(colours, cell), place(dashes, cell)) : theme.line(number));
}

/** Words of a metric: those of its curves, or its name in words. */
function metricWord(study, name) { return study.curves.find((curve) => curve.metric === name)?.label ?? name.replaceAll("_", " "); }

/** Cells, models and axes of recorded metrics, chosen by the reader. */
function resultCurves(study, arrays) {
  const all = study.curves.map((curve, number) => ({ ...curve, step: arrays[`curve/${number}/step`], time: arrays[`curve/${number}/time`], values: arrays[`curve/${number}/value`] }));
  const metrics = [...new Map(all.map((curve) => [curve.metric, curve.label])).entries()], several = study.cells.length > 1;
  if (!all.length) { fill("curves", make("p", { class: "quiet-text" }, "No metric was recorded more than once.")); return; }
  const pick = (label, entries, chosen) => { const select = make("select"); options(select, entries, chosen); $("curve-controls").append(make("label", {}, `${label} `, select)); return select; };
  const metric = pick("Metric", metrics, metrics[0][0]);
  const models = [...new Set(all.map((curve) => curve.model))];
  const model = pick("Model", [["*", "all models"], ...models.map((name) => [name, name])], models.includes("main") ? "main" : "*");
  const cell = several ? pick("Cell", [["*", "all cells"], ...study.cells.map((one, i) => [i, `${i}: ${one.label}`])], "*") : null;
  const axis = pick("Against", [["step", "commits"], ["time", "simulated time"]], study.axis);
  const band = pick("Band", [["quartiles", "quartiles"], ["range", "all replicas"], ["none", "none"]], "quartiles");
  const ofCell = lineOfCell(study), scale = pick("Scale", [["auto", "by the values"], ["linear", "linear"], ["log", "log"]], "auto");
  const draw = () => {
    const chosen = all.filter((curve) => curve.metric === metric.value && (model.value === "*" || curve.model === model.value) && (!cell || cell.value === "*" || curve.cell === Number(cell.value)));
    const lines = [];
    for (const [place, curve] of chosen.slice(0, 24).entries()) {
      const size = curve.step.length, row = (i) => curve.values.subarray(i * size, (i + 1) * size), x = curve[axis.value];
      // Beside the run's own model, baselines are grey.
      const baseline = models.includes("main") && model.value === "*" && curve.model !== "main";
      const { stroke, dash } = baseline ? { stroke: theme.names.soft, dash: theme.line(0, models.indexOf(curve.model)).dash } : ofCell(curve.cell, place);
      const label = [several ? study.cells[curve.cell].label : "", model.value === "*" || !several ? curve.model : ""].filter(Boolean).join(", ");
      if (curve.rows === 5 && curve.replicas >= 8) {
        const edges = band.value === "quartiles" ? [row(1), row(3)] : [row(0), row(4)];
        lines.push({ label, x, y: row(2), stroke, dash, band: band.value === "none" ? null : edges });
      } else {
        const middle = Array.from({ length: size }, (_, i) => median(Array.from({ length: curve.rows }, (__, k) => row(k)[i])));
        // Fewer than eight replicas are shown each.
        if (band.value !== "none" && curve.rows > 1) for (let k = 0; k < curve.rows; k++) lines.push({ label: `${label}, replica ${k}`, x, y: row(k), stroke: `${stroke}66`, width: 1, quiet: true });
        lines.push({ label, x, y: middle, stroke, dash });
      }
    }
    const values = lines.flatMap((one) => [...one.y]).filter(Number.isFinite), low = Math.min(...values), log = scale.value === "log" || (scale.value === "auto" && low > 0 && Math.max(...values) > 10 * low);
    const first = chosen[0];
    curves("curves", lines, { x: axis.value === "step" ? "commits" : "simulated time (mean clock periods)", y: first ? (first.axis.length > 38 ? first.axis.split(", ").pop() : first.axis) : "", log });
    key("curves-key", [...lines.filter((one) => !one.quiet).map((one) => [one.stroke, one.label || "main", "line", one.dash]), ["transparent", `${first?.replicas === 1 ? "1 replica" : `${first?.replicas ?? 0} replicas; line: median`}${log ? "; log scale" : ""}${chosen.length > 24 ? `; the first 24 of ${chosen.length} lines` : ""}${study.curves_left_out ? `; ${show(study.curves_left_out)} more curves of the run are not on this page (p2psim plot RUN draws them)` : ""}`]]);
  };
  for (const element of [metric, model, cell, axis, band, scale]) element?.addEventListener("change", draw);
  theme.changed.push(draw);
  draw();
}

/** What is undefined is left out; what is infinite has diverged, and counts. */
function median(values) {
  const known = values.filter((value) => value != null && !Number.isNaN(value)).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)), middle = known.length >> 1;
  if (!known.length) return NaN;
  // Between a number and infinity there is nothing: the lower of them.
  return known.length % 2 || !Number.isFinite(known[middle]) ? known[(known.length - 1) >> 1] : (known[middle - 1] + known[middle]) / 2;
}

/** What privacy costs: each cell's last median against the ε that it spent. */
function front(study, entries) {
  const main = entries.filter((row) => row.model === "main" && Number.isFinite(row["epsilon spent"]) && row["epsilon spent"] > 0);
  const metric = study.summary.metrics.find((name) => main.some((row) => row.metric === name)), rows = main.filter((row) => row.metric === metric);
  if (new Set(rows.map((row) => row["epsilon spent"])).size < 2) { $("front-panel").hidden = true; return; }
  const spent = rows.map((row) => row["epsilon spent"]), reached = rows.map((row) => row.median), wide = (values) => Math.min(...values) > 0 && Math.max(...values) > 10 * Math.min(...values);
  const powers = [wide(spent), wide(reached)], ofCell = lineOfCell(study), scaled = (value, log) => (log ? Math.log10(value) : value);
  scatter("front", rows.map((row, i) => ({ x: scaled(spent[i], powers[0]), y: scaled(reached[i], powers[1]), label: study.cells[row.cell].label, get colour() { return ofCell(row.cell, i).stroke; } })), { x: "largest ε spent, of all agents and replicas", y: `${metricWord(study, metric)} (median)`, labels: true, powers });
}

/** A map over two swept keys: the median of the first metric in each pair. */
function heat(study, entries, swept) {
  const main = entries.filter((row) => row.model === "main"), metrics = study.summary.metrics.filter((name) => main.some((row) => row.metric === name));
  const keys = swept.filter((name) => new Set(main.map((row) => row[name])).size > 1);
  if (keys.length < 2) { $("heat-panel").hidden = true; return; }
  const draw = () => {
    const metric = chosen.value, rows = main.filter((row) => row.metric === metric), unique = (name) => [...new Set(rows.map((row) => row[name]))];
    const [down, across] = keys, medians = rows.map((row) => row.median), [least, most] = range(medians), log = least > 0 && most > 10 * least;
    const place = (value) => (log ? Math.log(value) : value), [low, high] = [place(least), place(most)];
    const table = make("table", { class: "heat" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, `${keyWord(study, down)} \\ ${keyWord(study, across)}`), ...unique(across).map((value) => make("th", { scope: "col" }, valueWord(study, across, value))))));
    table.append(make("tbody", {}, ...unique(down).map((value) => make("tr", {}, make("th", { scope: "row", class: "text" }, valueWord(study, down, value)), ...unique(across).map((other) => {
      const middle = median(rows.filter((row) => row[down] === value && row[across] === other).map((row) => row.median)), cell = make("td", {}, show(middle));
      const share = high > low ? (place(middle) - low) / (high - low) : 0.5;
      cell.style.background = theme.shade(share);
      cell.style.color = (share > 0.55) !== (document.documentElement.dataset.scheme === "dark") ? "#fff" : "#14171b";
      return cell;
    })))));
    fill("heat", make("div", { class: "controls" }, make("label", {}, "Metric ", chosen)), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Map of two swept keys" }, table));
  };
  const chosen = make("select");
  options(chosen, metrics.map((name) => [name, metricWord(study, name)]), metrics[0]);
  chosen.addEventListener("change", draw);
  theme.changed.push(draw);
  draw();
}

/** Figures that p2psim plot drew before the page was made, and how to draw them. */
function figures() {
  const drawn = JSON.parse($("drawn").textContent), shown = drawn.filter((one) => one.image), others = drawn.filter((one) => !one.image);
  fill("figures", ...shown.map((one) => {
    const source = `data:image/png;base64,${one.image}`, name = `${one.name}.png`;
    return make("figure", { class: "view" }, make("img", { src: source, alt: `Figure ${one.name}` }), make("figcaption", {}, filesOf(one), make("a", { href: source, download: name }, "Save image")));
  }));
  $("how-many").textContent = `(${drawn.length || "none"} in the run folder)`;
  $("drawn-figures").open = shown.length > 0 && shown.length <= 4;
  $("drawn-figures").hidden = !shown.length;
  const command = (text) => [make("code", {}, text), make("button", { type: "button", class: "quiet", onclick: (event) => copyText(text, event.target) }, "Copy")];
  const rest = others.length ? `Without an image on this page: ${others.map(filesOf).join("; ")}. ` : "";
  const origin = drawn.length ? `Figures as they were in the run folder when this page was made. ${rest}To draw them again: ` : "No figure was in the run folder when this page was made. Draw them, and make the page again to see them here: ";
  fill("undrawn", origin, ...command("p2psim plot RUN"), " For print: ", ...command("p2psim plot RUN --width column --format pdf"), " The table with all digits: ", ...command("p2psim show RUN --format csv"), " RUN is the run folder.");
}

/** A figure's name, and the kinds of its files. */
function filesOf(one) { return `${one.name} (${one.files.map((name) => name.slice(one.name.length + 1)).join(", ")})`; }

/** Copy text; where the browser does not allow that, select it for the reader. */
async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousSibling);
    button.textContent = "Selected";
  }
}
