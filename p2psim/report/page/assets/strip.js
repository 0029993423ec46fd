// The whole run in one strip: a metric, failures and absences; a reader drags in it to move through time.
const strip = {};

strip.draw = (r, view) => {
  const { c, width, height } = prepare($("strip")), names = theme.names;
  const left = width < 520 ? 64 : 104, right = width - 8, bottom = height - 22, top = 8;
  const x = (strip.x = (time) => left + (time / (r.end || 1)) * (right - left));
  strip.time = (px) => Math.min(Math.max((px - left) / (right - left), 0), 1) * r.end;
  const away = r.arrays["overview/away"], bins = away.length, wide = (right - left) / bins;
  c.fillStyle = names.away;
  c.globalAlpha = 0.8;
  for (let i = 0; i < bins; i++) if (away[i] > 0) box(c, left + i * wide, top, wide + 0.5, away[i] * (bottom - top) * 0.5);
  c.globalAlpha = 1;
  // Failures rise from the lower edge: collided, lost, receiver offline.
  let most = 1;
  for (let i = 0; i < bins; i++) most = Math.max(most, r.overview[bins + i] + r.overview[2 * bins + i] + r.overview[3 * bins + i]);
  for (let i = 0; i < bins; i++) {
    let base = bottom;
    for (const [row, name] of [[2, "collided"], [1, "lost"], [3, "offline"]]) {
      const tall = (r.overview[row * bins + i] / most) * (bottom - top) * 0.45;
      if (!tall) continue;
      c.fillStyle = names[name];
      box(c, left + i * wide, base - tall, Math.max(wide - 0.3, 0.7), tall);
      base -= tall;
    }
  }
  strip.curve(r, view, c, x, top, bottom);
  c.strokeStyle = names.accent;
  c.lineWidth = 1.5;
  c.strokeRect(x(Math.max(view.t0, 0)), top - 5, Math.max(x(Math.min(view.t1, r.end)) - x(Math.max(view.t0, 0)), 2), bottom - top + 7);
  c.strokeStyle = names.ink;
  line(c, x(view.t), 0, x(view.t), bottom + 3);
  timeAxis(c, x, 0, r.end, left, right, bottom);
};

/** The chosen metric of the replica, and of chosen agents where it is of each. */
strip.curve = (r, view, c, x, top, bottom) => {
  const chosen = view.metric;
  if (!chosen) return;
  const curves = chosen.curves(view.agents), values = [];
  for (const curve of curves) for (const value of curve.value) if (Number.isFinite(value)) values.push(value);
  if (!values.length) return;
  let [low, high] = range(values);
  const log = low > 0 && high > 20 * low, scale = log ? Math.log10 : (value) => value;
  if (low === high) { low -= 0.5; high += 0.5; }
  const y = (value) => bottom - 2 - ((scale(value) - scale(low)) / (scale(high) - scale(low))) * (bottom - top - 4);
  for (const curve of curves) {
    c.strokeStyle = curve.main ? names(curve) : theme.names.soft;
    c.lineWidth = curve.main ? 2 : 1;
    c.globalAlpha = curve.main ? 1 : 0.6;
    c.beginPath();
    let pen = false;
    for (let i = 0; i < curve.time.length; i++) {
      if (!Number.isFinite(curve.value[i])) { pen = false; continue; }
      if (pen) c.lineTo(x(curve.time[i]), y(curve.value[i])); else c.moveTo(x(curve.time[i]), y(curve.value[i]));
      pen = true;
    }
    c.stroke();
    drawing.marks++;
  }
  c.globalAlpha = 1;
  c.lineWidth = 1;
  c.fillStyle = theme.names.soft;
  c.textAlign = "right";
  c.textBaseline = "middle";
  c.fillText(show(high), x(0) - 6, top + 4);
  c.fillText(show(low), x(0) - 6, bottom - 6);
  if (log) c.fillText("log", x(0) - 6, (top + bottom) / 2);
  function names(curve) { return curve.colour ?? theme.names.ink; }
};

/** What the strip can draw: metrics of the run, then of single agents. */
strip.metrics = (r) => {
  const found = r.series.map((series, number) => ({
    name: `series/${number}`, model: series.model, label: series.model === "main" ? series.label : `${series.label}, ${series.model}`,
    curves: () => [{ time: r.arrays[`series/${number}/time`], value: r.arrays[`series/${number}/value`], main: true }],
  }));
  r.own.forEach((own, number) => {
    const time = r.arrays[`own/${number}/time`], all = r.arrays[`own/${number}/value`], size = time.length;
    const of = (agent) => ({ time, value: all.subarray(agent * size, (agent + 1) * size) });
    found.push({
      name: `own/${number}`, model: "main", label: `${own.label}, of each agent`,
      curves: (agents) => [
        ...Array.from({ length: Math.min(r.n, 60) }, (_, agent) => of(agent)),
        ...[...agents].filter((agent) => agent >= 0).slice(0, 8).map((agent, place) => ({ ...of(agent), main: true, colour: theme.line(place).stroke })),
      ],
    });
  });
  return found.sort((one, other) => (one.model !== "main") - (other.model !== "main"));
};

strip.key = (r) => {
  const names = theme.names, curve = r.series.length || r.own.length ? [[names.ink, "metric", "line"]] : [];
  const away = r.arrays["away/agent"].length ? [[names.away, "share of agents offline (from above)"]] : [];
  key("strip-key", [...curve, ...failures(r), ...away, [names.accent, "stretch shown above", "line"]]);
};
