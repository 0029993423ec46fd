// Curves by uPlot, and scatter plots on a canvas of our own.
const charts = new Map();

/**
 * Draw curves in a box. lines: {label, x, y, band?: [low, high], stroke?, dash?, width?}; all are put on one axis of x.
 */
function curves(id, lines, { x = "", y = "", log = false, steps = false, mark = null } = {}) {
  const redraw = () => {
    const target = $(id);
    target.replaceChildren();
    if (!lines.length) { target.append(make("p", { class: "quiet-text" }, "Nothing to draw.")); return; }
    const grid = [...new Set(lines.flatMap((one) => [...one.x]))].sort((a, b) => a - b), place = new Map(grid.map((value, i) => [value, i]));
    const spread = (one, values) => {
      const found = new Array(grid.length).fill(null);
      one.x.forEach((value, i) => { const number = values[i]; found[place.get(value)] = Number.isFinite(number) && !(log && number <= 0) ? number : null; });
      return found;
    };
    const data = [grid], series = [{ label: x, value: (_, value) => show(value) }], bands = [];
    for (const one of lines) {
      const common = { stroke: one.stroke, dash: one.dash, spanGaps: true, points: { show: one.x.length < 2 }, paths: steps ? uPlot.paths.stepped({ align: 1 }) : undefined, value: (_, value) => show(value) };
      if (one.band) {
        for (const edge of one.band) { data.push(spread(one, edge)); series.push({ ...common, label: `${one.label}, band`, width: 0, points: { show: false } }); }
        bands.push({ series: [series.length - 1, series.length - 2], fill: `${one.stroke}2e` });
      }
      data.push(spread(one, one.y));
      series.push({ ...common, label: one.label, width: one.width ?? 2 });
    }
    const axis = { stroke: theme.names.soft, grid: { stroke: theme.names.faint, width: 1 }, ticks: { stroke: theme.names.line, width: 1 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 22 };
    const width = Math.max(target.clientWidth, 200), pen = make("canvas").getContext("2d");
    pen.font = axis.labelFont;
    const options = {
      width, height: 280, series, bands, legend: { show: false },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      axes: [{ ...axis, label: fitted(pen, x, width - 90), values: (_, values) => values.map(show), space: 60 }, { ...axis, label: fitted(pen, y, 220), size: 68, values: (_, values) => values.map((value) => (value == null ? "" : show(value))) }],
      hooks: mark ? { draw: [(u) => mark(u)] } : {},
    };
    target.append(make("div", { role: "img", "aria-label": `${y} against ${x}, ${lines.length} lines` }));
    new uPlot(options, data, target.firstChild);
  };
  charts.set(id, redraw);
  redraw();
}

/** Draw points; `act` is what a click on one does. points: {x, y, label, agent?} */
function scatter(id, points, { x = "", y = "", act = null, chosen = null, labels = false, powers = [false, false] } = {}) {
  // A log axis, which `powers` says of x and of y, has the logarithms of values, and lines at powers of ten if it has two.
  const written = (value, way) => show(powers[way] ? Number((10 ** value).toPrecision(4)) : value);
  const marks = (low, high, most, way) => {
    const found = ticks(low, high, most), whole = found.filter(Number.isInteger);
    return powers[way] && whole.length > 1 ? whole : found;
  };
  const redraw = () => {
    const target = $(id), canvas = target.querySelector("canvas") ?? target.appendChild(make("canvas", { class: "own", role: "img", tabindex: 0 }));
    canvas.setAttribute("aria-label", `${y} against ${x}, ${points.length} points`);
    const { c, width, height } = prepare(canvas), left = 66, right = width - 12, top = 10, bottom = height - 40;
    const known = points.filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
    let [x0, x1] = range(known.map((point) => point.x)), [y0, y1] = range(known.map((point) => point.y));
    const pad = (low, high) => (low === high ? [low - 0.5, high + 0.5] : [low - (high - low) * 0.06, high + (high - low) * 0.06]);
    [x0, x1] = pad(x0, x1);
    [y0, y1] = pad(y0, y1);
    const px = (value) => left + ((value - x0) / (x1 - x0)) * (right - left), py = (value) => bottom - ((value - y0) / (y1 - y0)) * (bottom - top);
    c.strokeStyle = theme.names.faint;
    c.fillStyle = theme.names.soft;
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const tick of marks(y0, y1, 5, 1)) { line(c, left, py(tick), right, py(tick)); c.fillText(written(tick, 1), left - 5, py(tick)); }
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const tick of marks(x0, x1, width / 90, 0)) { line(c, px(tick), top, px(tick), bottom); write(c, written(tick, 0), px(tick), bottom + 5, width); }
    c.fillText(fitted(c, x, right - left), (left + right) / 2, bottom + 22);
    c.save();
    c.translate(11, (top + bottom) / 2);
    c.rotate(-Math.PI / 2);
    c.fillText(fitted(c, y, bottom - top), 0, -6);
    c.restore();
    for (const point of known) {
      const mine = chosen?.(point);
      c.fillStyle = mine ? theme.names.late : point.colour ?? theme.names.arrived;
      c.globalAlpha = mine ? 1 : known.length > 400 ? 0.4 : 0.75;
      dot(c, px(point.x), py(point.y), mine ? 7 : 4.5);
      if (mine || (labels && known.length <= 8)) { c.globalAlpha = 1; c.fillStyle = theme.names.ink; c.textAlign = px(point.x) > (left + right) / 2 ? "right" : "left"; write(c, point.label, px(point.x) + (c.textAlign === "left" ? 8 : -8), py(point.y) - 5, width, 170); }
    }
    c.globalAlpha = 1;
    if (!known.length) { c.textAlign = "center"; c.fillText("No finite numbers to draw.", (left + right) / 2, (top + bottom) / 2); }
    const near = (event) => {
      const frame = canvas.getBoundingClientRect(), mx = event.clientX - frame.left, my = event.clientY - frame.top;
      let best = null, least = 14 ** 2;
      for (const point of known) { const far = (px(point.x) - mx) ** 2 + (py(point.y) - my) ** 2; if (far < least) [least, best] = [far, point]; }
      return best;
    };
    canvas.onpointermove = (event) => { const point = near(event); if (point) tip.show(`${point.label}: ${written(point.x, 0)}, ${written(point.y, 1)}`, event.clientX, event.clientY); else tip.hide(); };
    canvas.onpointerleave = tip.hide;
    canvas.onclick = (event) => { const point = near(event); if (point && act) act(point, event); };
  };
  charts.set(id, redraw);
  redraw();
  return redraw;
}

function startCharts() {
  const redrawAll = () => { for (const redraw of charts.values()) redraw(); };
  theme.changed.push(redrawAll);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redrawAll(); } });
}
