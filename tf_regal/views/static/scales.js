// Time and byte scales, and numbers in words. No DOM.

const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const BYTE_UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];

function inUnit(value, units, digits) {
  if (value === 0) return `0 ${units[units.length - 1][1]}`;
  const [size, unit] = units.find(([s]) => Math.abs(value) >= s) || units[units.length - 1];
  return `${trimmed(value / size, digits)} ${unit}`;
}

function trimmed(value, digits) {
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value) || 1)));
  const text = value.toFixed(Math.min(decimals, 12));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export function timeText(ns, digits = 4) {
  return inUnit(ns, TIME_UNITS, digits);
}

export function byteText(bytes, digits = 4) {
  return inUnit(bytes, BYTE_UNITS, digits);
}

export function countText(count) {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// share: 0.1 is +10 %.
export function percentText(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const percent = 100 * share;
  if (Math.abs(percent) < 0.05) return "0 %";
  return `${percent > 0 ? "+" : "−"}${trimmed(Math.abs(percent), Math.abs(percent) < 10 ? 2 : 3)} %`;
}

// Round steps (1, 2, 5 times a power of ten) from `from` to `to`, `most` of them at most.
export function ticks(from, to, most) {
  const span = to - from;
  if (!(span > 0) || most < 1) return [];
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw * (1 - 1e-9));
  const result = [];
  for (let i = Math.ceil(from / step - 1e-9) + 0; i * step <= to + 1e-9 * span; i++) result.push(i * step);
  return result;
}

// A tick of an axis whose step is known: so many decimals that neighbours differ.
export function tickText(ns, step) {
  if (ns === 0) return "0";
  const [size, unit] = TIME_UNITS.find(([s]) => Math.abs(ns) >= s) || TIME_UNITS[3];
  const decimals = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  return `${(ns / size).toFixed(Math.min(decimals, 9))} ${unit}`;
}

// A view {from, to} zoomed by `factor` (below 1: in) around the time `at`, inside [0, end], never narrower than `least`.
export function zoomed(view, factor, at, end, least = 10) {
  const span = Math.min(Math.max((view.to - view.from) * factor, Math.min(least, end)), end);
  const share = (at - view.from) / (view.to - view.from);
  return moved({from: at - share * span, to: at - share * span + span}, 0, end);
}

// A view moved by `delta`, kept inside [0, end].
export function moved(view, delta, end) {
  const span = Math.min(view.to - view.from, end);
  const from = Math.min(Math.max(view.from + delta, 0), end - span);
  return {from, to: from + span};
}
