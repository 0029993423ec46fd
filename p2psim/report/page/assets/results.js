// Results of the study: curves with selectors, the front of privacy and utility, a map of two swept keys, the table.
function showResults(study, arrays) {
  resultCurves(study, arrays);
  const { columns, rows, swept } = study.summary, at = (name) => columns.indexOf(name), entries = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  const number = (value) => (value === "∞" ? Infinity : value === "−∞" ? -Infinity : value);
  for (const row of entries) for (const name of ["median", "q25", "q75", "epsilon spent", "budget"]) row[name] = number(row[name]);
  const texts = new Set(columns.filter((name) => entries.some((row) => typeof row[name] === "string")));
  texts.delete("epsilon spent");
  texts.delete("budget");
  const bad = (value) => (value ? "flag" : "");
  sortable($("table"), columns.map((name) => ({ label: shortKey(name), text: texts.has(name), of: (row) => row[name], class: name === "flags" ? bad : undefined, show: name === "flags" ? (value) => value || "" : show })), entries, { label: "Last recorded values" });
  $("save").addEventListener("click", () => saveCsv(`${study.name}.csv`, columns, rows));
  front(study, entries);
  heat(study, entries, swept, at);
}

/** The last part of a swept key. */
function shortKey(name) { return name.includes(".") ? name.split(".").slice(-1)[0].replaceAll("_", " ") : name; }

/** Cells, models and axes of recorded metrics, chosen by the reader. */
function resultCurves(study, arrays) {
  const all = study.curves.map((curve, number) => ({ ...curve, step: arrays[`curve/${number}/step`], time: arrays[`curve/${number}/time`], values: arrays[`curve/${number}/value`] }));
  const metrics = [...new Map(all.map((curve) => [curve.metric, curve.label])).entries()], several = study.cells.length > 1;
  if (!all.length) { fill("curves", make("p", { class: "quiet-text" }, "No metric was recorded more than once.")); return; }
  const pick = (label, entries, chosen) => { const select = make("select"); options(select, entries, chosen); $("curve-controls").append(make("label", {}, `${label} `, select)); return select; };
  const metric = pick("Metric", metrics, metrics[0][0]);
  const models = [...new Set(all.map((curve) => curve.model))];
  const model = pick("Model", [["*", "all models"], ...models.map((name) => [name, name])], models.includes("main") ? "main" : "*");
  const cell = several ? pick("Cell", [["*", "all cells"], ...study.cells.map((one, i) => [i, `${i}: ${shortLabel(one.label)}`])], "*") : null;
  const axis = pick("Against", [["step", "commits"], ["time", "simulated time"]], all[0].time.length ? "step" : "time");
  const band = pick("Band", [["quartiles", "quartiles"], ["range", "all replicas"], ["none", "none"]], "quartiles");
  const scale = pick("Scale", [["auto", "by the values"], ["linear", "linear"], ["log", "log"]], "auto");
  const draw = () => {
    const chosen = all.filter((curve) => curve.metric === metric.value && (model.value === "*" || curve.model === model.value) && (!cell || cell.value === "*" || curve.cell === Number(cell.value)));
    const lines = [];
    for (const [place, curve] of chosen.slice(0, 24).entries()) {
      const size = curve.step.length, row = (i) => curve.values.subarray(i * size, (i + 1) * size), { stroke, dash } = theme.line(place), x = curve[axis.value];
      const label = [several ? shortLabel(study.cells[curve.cell].label) : "", model.value === "*" || !several ? curve.model : ""].filter(Boolean).join(", ");
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
    const first = chosen[0], direction = first ? (first.rises ? "higher is better, or more" : "lower is better") : "";
    curves("curves", lines, { x: axis.value === "step" ? "commits" : "simulated time (mean clock periods)", y: first ? first.label : "", log });
    key("curves-key", [...lines.filter((one) => !one.quiet).map((one) => [one.stroke, one.label || "main", "line"]), ["transparent", `${first?.replicas ?? 0} replicas; line: median${direction ? `; ${direction}` : ""}${log ? "; log scale" : ""}${chosen.length > 24 ? `; the first 24 of ${chosen.length} lines` : ""}`]]);
  };
  for (const element of [metric, model, cell, axis, band, scale]) element?.addEventListener("change", draw);
  theme.changed.push(draw);
  draw();
}

function median(values) {
  const known = values.filter(Number.isFinite).sort((a, b) => a - b), middle = known.length >> 1;
  return known.length ? (known.length % 2 ? known[middle] : (known[middle - 1] + known[middle]) / 2) : NaN;
}

function shortLabel(text) { return text.split(", ").map((part) => part.replace(/^[\w.]*\.(\w+) = /, (_, last) => `${last.replaceAll("_", " ")} `)).join(", "); }

/** What privacy costs: each cell's last median against the ε that it spent. */
function front(study, entries) {
  const main = entries.filter((row) => row.model === "main" && Number.isFinite(row["epsilon spent"]) && row["epsilon spent"] > 0);
  const metric = main[0]?.metric, rows = main.filter((row) => row.metric === metric);
  if (new Set(rows.map((row) => row["epsilon spent"])).size < 2) { $("front-panel").hidden = true; return; }
  scatter("front", rows.map((row) => ({ x: Math.log10(row["epsilon spent"]), y: row.median, label: shortLabel(study.cells[row.cell].label) })), { x: "log₁₀ of the largest ε spent", y: `${metric} (median)`, labels: true });
}

/** A map over two swept keys: the median of the first metric in each pair. */
function heat(study, entries, swept) {
  const main = entries.filter((row) => row.model === "main"), metrics = [...new Set(main.map((row) => row.metric))];
  const keys = swept.filter((name) => new Set(main.map((row) => row[name])).size > 1);
  if (keys.length < 2) { $("heat-panel").hidden = true; return; }
  const draw = () => {
    const metric = chosen.value, rows = main.filter((row) => row.metric === metric), unique = (name) => [...new Set(rows.map((row) => row[name]))];
    const [down, across] = keys, [low, high] = range(rows.map((row) => row.median));
    const table = make("table", { class: "heat" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, `${shortKey(down)} \\ ${shortKey(across)}`), ...unique(across).map((value) => make("th", { scope: "col" }, show(value))))));
    table.append(make("tbody", {}, ...unique(down).map((value) => make("tr", {}, make("th", { scope: "row", class: "text" }, show(value)), ...unique(across).map((other) => {
      const of = rows.filter((row) => row[down] === value && row[across] === other), cell = make("td", {}, show(median(of.map((row) => row.median))));
      const share = high > low ? (median(of.map((row) => row.median)) - low) / (high - low) : 0.5;
      cell.style.background = theme.shade(share);
      cell.style.color = (share > 0.55) !== (document.documentElement.dataset.scheme === "dark") ? "#fff" : "#14171b";
      return cell;
    })))));
    fill("heat", make("div", { class: "controls" }, make("label", {}, "Metric ", chosen)), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Map of two swept keys" }, table));
  };
  const chosen = make("select");
  options(chosen, metrics.map((name) => [name, name]), metrics[0]);
  chosen.addEventListener("change", draw);
  theme.changed.push(draw);
  draw();
}
