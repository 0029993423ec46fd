// What the page holds: plain values, and arrays that are decoded from compressed text.
const $ = (id) => document.getElementById(id);
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

async function decode() {
  const plain = JSON.parse($("plain").textContent);
  const text = atob($("arrays").textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const arrays = {};
  for (const [name, [kind, at, size]] of Object.entries(plain.places)) arrays[name] = new TYPES[kind](buffer, at, size);
  return { plain, arrays };
}

/** Bits that NumPy has packed, the highest of each byte first. */
function unpackBits(bytes, count) {
  const bits = new Uint8Array(count);
  for (let i = 0; i < count; i++) bits[i] = (bytes[i >> 3] >> (7 - (i & 7))) & 1;
  return bits;
}

/** An element with attributes, and children that are elements or text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function fill(id, ...children) { $(id).replaceChildren(...children); }

/** A number as a person reads it: four digits that count. */
function show(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (value === Infinity) return "∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1e5 || (size < 1e-3 && size > 0)) {
    const [digits, power] = value.toExponential(2).split("e");
    return `${digits}·10${[...String(Number(power))].map((c) => ({ "-": "⁻" })[c] ?? "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("")}`;
  }
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
}

/** Number of entries of a rising array that are at most (or, strictly, below) a value. */
function countUpTo(values, value, first = 0, last = values.length, strictly = false) {
  let low = first, high = last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (strictly ? values[middle] < value : values[middle] <= value) low = middle + 1; else high = middle;
  }
  return low - first;
}

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => make("option", { value, selected: String(value) === String(chosen) }, text)));
}
