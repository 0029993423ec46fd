// Canvases: their size in device pixels, marks that are counted, and an axis of time.
const drawing = { marks: 0 };

/** A canvas ready to be drawn on, in CSS pixels. */
function prepare(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2), width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = "11px system-ui, sans-serif";
  c.lineWidth = 1;
  c.globalAlpha = 1;
  c.setLineDash([]);
  return { c, width, height };
}

/** Round numbers that divide a stretch. */
function ticks(from, to, most) {
  const raw = (to - from) / Math.max(most, 1);
  if (!(raw > 0)) return [from];
  const power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((digit) => digit * power >= raw) * power, found = [];
  for (let i = Math.ceil(from / step); i * step <= to + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
  drawing.marks++;
}

function box(c, x, y, width, height) {
  c.fillRect(x, y, width, height);
  drawing.marks++;
}

function dot(c, x, y, radius) {
  c.beginPath();
  c.arc(x, y, radius, 0, 2 * Math.PI);
  c.fill();
  drawing.marks++;
}

/** An axis of time along the lower edge. */
function timeAxis(c, x, from, to, left, right, bottom) {
  c.fillStyle = theme.names.soft;
  c.strokeStyle = theme.names.line;
  c.textAlign = "center";
  c.textBaseline = "top";
  for (const tick of ticks(from, to, (right - left) / 70)) {
    line(c, x(tick), bottom, x(tick), bottom + 4);
    write(c, show(tick), x(tick), bottom + 5, right + 8);
  }
}

/** Text no wider than a number of pixels. */
function fitted(c, text, width) {
  // Without its unit a name is still whole.
  for (const whole of [text, text.replace(/ \([^()]*\)$/, "")]) if (c.measureText(whole).width <= width) return whole;
  let size = text.length;
  while (size > 1 && c.measureText(`${text.slice(0, size)}…`).width > width) size--;
  return `${text.slice(0, size)}…`;
}

/** Write text, moved and shortened so that no edge of a canvas of this width cuts it. */
function write(c, text, x, y, width, most = width) {
  const shown = fitted(c, text, Math.min(most, width - 4)), wide = c.measureText(shown).width;
  const before = c.textAlign === "center" ? wide / 2 : c.textAlign === "right" ? wide : 0;
  c.fillText(shown, Math.min(Math.max(x, 2 + before), width - 2 - wide + before), y);
}

/** Colours of failures with their names, those that happened in the run. */
function failures(r) {
  const bins = r.arrays["overview/away"].length, row = (number) => r.overview.subarray(number * bins, (number + 1) * bins).some((count) => count > 0), names = theme.names;
  return [[2, names.collided, "collided"], [1, names.lost, "lost or dropped"], [3, names.offline, "receiver offline"]].filter(([number]) => row(number)).map(([, colour, text]) => [colour, text]);
}

function key(id, entries) {
  fill(id, ...entries.map(([colour, text, shape = "", dash = null]) => {
    const swatch = make("i", { class: shape });
    swatch.style.background = swatch.style.borderColor = colour;
    if (dash) swatch.style.borderTopStyle = dash[0] > 4 ? "dashed" : "dotted";
    return make("span", {}, swatch, text);
  }));
}

const tip = { show(text, x, y) {
  const element = $("tip");
  element.textContent = text;
  element.className = text ? "on" : "";
  element.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - element.offsetWidth - 8))}px`;
  element.style.top = `${Math.max(4, y - 34)}px`;
}, hide() { $("tip").className = ""; } };
