// Tables that a reader can sort; long ones show their first rows, and more on demand.
const PAGE = 50;

/**
 * columns: {label, text (left-aligned), of: row → value, show?, class?}; chosen: whether a row is selected; act: what a click does.
 */
function sortable(target, columns, rows, { sort = null, act = null, chosen = null, label = "Table" } = {}) {
  const state = { column: sort?.[0] ?? null, down: sort?.[1] ?? false, most: PAGE };
  const body = make("tbody"), head = make("tr"), more = make("div", { class: "more" });
  const compare = (one, other) => {
    const [a, b] = [state.column.of(one), state.column.of(other)];
    const [noA, noB] = [a == null || Number.isNaN(a), b == null || Number.isNaN(b)];
    if (noA || noB) return noA - noB;
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return state.down ? -order : order;
  };
  const draw = () => {
    const sorted = state.column ? [...rows].sort(compare) : rows;
    head.replaceChildren(...columns.map((column) => {
      const mine = state.column === column, arrow = mine ? (state.down ? " ▼" : " ▲") : "";
      const sortBy = () => { state.down = mine ? !state.down : !column.text; state.column = column; draw(); };
      return make("th", { scope: "col", class: column.text ? "text" : "", "aria-sort": mine ? (state.down ? "descending" : "ascending") : false }, make("button", { type: "button", onclick: sortBy }, `${column.label}${arrow}`));
    }));
    body.replaceChildren(...sorted.slice(0, state.most).map((row) => {
      const cells = columns.map((column) => {
        const value = column.of(row);
        return make("td", { class: [column.text ? "text" : "", column.class?.(value) ?? ""].join(" ").trim() || false }, (column.show ?? show)(value));
      });
      const attributes = act ? { class: "clickable", tabindex: 0, "aria-selected": String(!!chosen?.(row)), onclick: (event) => act(row, event), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); act(row, event); } } } : {};
      return make("tr", attributes, ...cells);
    }));
    more.replaceChildren(...(sorted.length > state.most ? [make("button", { type: "button", onclick: () => { state.most *= 4; draw(); } }, `Show more of ${sorted.length.toLocaleString("en")} rows`)] : []));
  };
  draw();
  target.replaceChildren(make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, make("table", {}, make("thead", {}, head), body)), more);
  return draw;
}

/** Offer rows as a CSV file; nothing leaves the page. */
function saveCsv(name, columns, rows) {
  const cell = (value) => (value == null ? "" : /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const text = [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n");
  const link = make("a", { href: URL.createObjectURL(new Blob([`${text}\n`], { type: "text/csv" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
