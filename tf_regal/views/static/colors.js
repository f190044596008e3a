// Colours that can be told apart, in light and dark, and by people who see fewer of them. No DOM.

// Ten hues of similar weight (after Paul Tol's and Okabe and Ito's advice: differ in lightness too), for fills with dark text in light mode.
const HUES = [210, 28, 150, 340, 52, 265, 185, 5, 95, 310];

const CATEGORIES = [[], []];

// The colour of a category: hues first, then the same again lighter or darker.
export function categoryColor(index, dark) {
  return (CATEGORIES[dark ? 1 : 0][index] ??= madeColor(index, dark));
}

function madeColor(index, dark) {
  const hue = HUES[index % HUES.length], turn = Math.floor(index / HUES.length) % 3;
  const lightness = (dark ? 52 : 62) + [0, 12, -12][turn];
  return `hsl(${hue} ${[62, 40, 52][turn]}% ${lightness}%)`;
}

// A colour from little (pale) to much (strong); share from 0 to 1.
export function costColor(share, dark) {
  const s = Math.min(Math.max(share, 0), 1);
  return dark ? `hsl(${48 - 40 * s} ${40 + 50 * s}% ${30 + 28 * s}%)` : `hsl(${48 - 40 * s} ${50 + 40 * s}% ${84 - 34 * s}%)`;
}

// For strings: the same text has the same colour in all plans.
export function textIndex(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0) % 30;
}

export function theme(dark) {
  return dark
    ? {text: "#e8eaed", faint: "#9aa0a6", line: "#3c4043", row: "#2a2b2e", background: "#202124", transfer: "#8ab4f8", accent: "#fdd663",
       planned: "#8ab4f8", default: "#f6aea9", limit: "#f28b82"}
    : {text: "#202124", faint: "#5f6368", line: "#dadce0", row: "#f4f5f7", background: "#ffffff", transfer: "#1a73e8", accent: "#b06000",
       planned: "#1a5fb4", default: "#b3541e", limit: "#c5221f"};
}
