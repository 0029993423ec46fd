// The lane of a shared medium: who is on the air when, overlaps in red, and the grid of slots.
const medium = {};

medium.is = (r) => r.channel.shared && r.channel.collision !== "none" && r.airs.length > 0;

medium.draw = (r, view, c, x, left, right, top, height) => {
  const names = theme.names, slot = r.channel.collision === "slotted" ? r.channel.airtime : 0;
  if (slot && x(slot) - x(0) >= 4) {
    c.strokeStyle = names.line;
    for (let i = Math.ceil(view.t0 / slot); i * slot <= view.t1; i++) line(c, x(i * slot), top, x(i * slot), top + height);
  }
  const from = airsFrom(r, view.t0 - r.channel.airtime);
  // Who overlaps another stands in the lower half.
  let busyUntil = -Infinity, drawn = 0;
  for (let i = from; i < r.airs.length && r.airs[i].begin <= view.t1 && drawn < 1500; i++, drawn++) {
    const air = r.airs[i], overlaps = air.begin < busyUntil - 1e-12;
    busyUntil = Math.max(busyUntil, air.end);
    const x0 = Math.max(x(air.begin), left), x1 = Math.min(x(air.end), right);
    if (x1 < left) continue;
    c.fillStyle = air.bad ? names.collided : names.arrived;
    c.globalAlpha = air.bad ? 0.75 : 0.6;
    box(c, x0, top + (overlaps ? height / 2 : 1), Math.max(x1 - x0, 1), air.bad ? height / 2 - 1 : height - 2);
  }
  c.globalAlpha = 1;
};

function airsFrom(r, time) {
  let low = 0, high = r.airs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (r.airs[middle].begin < time) low = middle + 1; else high = middle;
  }
  return low;
}
