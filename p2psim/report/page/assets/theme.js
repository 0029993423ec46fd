// Colours, which follow the scheme of the system unless a reader chooses, and whether marks may move by themselves.
const theme = { names: {}, ramp: [], changed: [], still: matchMedia("(prefers-reduced-motion: reduce)").matches };

theme.read = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "panel", "ink", "soft", "line", "faint", "accent", "arrived", "lost", "collided", "offline", "late", "update", "release", "wake", "compute", "air", "band", "away", "bad"]) theme.names[name] = style.getPropertyValue(`--${name}`).trim();
  theme.ramp = [0, 1, 2, 3, 4].map((step) => {
    const hex = style.getPropertyValue(`--r${step}`).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
};

/** Colour of a share between 0 and 1; grey where there is none. */
theme.shade = (share) => {
  if (share == null || Number.isNaN(share)) return theme.names.away;
  const place = Math.min(Math.max(share, 0), 1) * 4, low = Math.min(Math.floor(place), 3), part = place - low;
  const [from, to] = [theme.ramp[low], theme.ramp[low + 1]];
  return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * part)).join(",")})`;
};

/** Eight colours of lines, apart also for readers who see fewer, and three dashes: of lines from the ninth on, or chosen. */
theme.line = (place, dash = Math.floor(place / 8)) => {
  const dark = document.documentElement.dataset.scheme === "dark";
  const known = dark
    ? ["#78acf5", "#f2a33a", "#4cc79a", "#f08ab8", "#d8d26a", "#a58bf0", "#7fd4e8", "#ff7a6b"]
    : ["#1f5fbf", "#d97706", "#12805c", "#b83280", "#8a7a00", "#7a3fb5", "#0f7f9a", "#c0392b"];
  return { stroke: known[place % 8], dash: [undefined, [6, 3], [2, 3]][dash % 3] };
};

theme.start = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)"), button = $("scheme");
  let choice = "Auto";
  const apply = () => {
    document.documentElement.dataset.scheme = choice === "Auto" ? (dark.matches ? "dark" : "light") : choice.toLowerCase();
    document.documentElement.style.colorScheme = document.documentElement.dataset.scheme;
    button.textContent = choice === "Auto" ? "◐ Auto" : choice === "Dark" ? "● Dark" : "○ Light";
    theme.read();
    for (const redraw of theme.changed) redraw();
  };
  button.addEventListener("click", () => {
    choice = { Auto: "Light", Light: "Dark", Dark: "Auto" }[choice];
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
};
