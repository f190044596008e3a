// Elements from text, never from markup: op names are data.

// Of all that is drawn: where rows begin, titles' height, fonts.
export const LABELS = 168;
export const TITLE = 26;
export const FONT = "12px Roboto, Arial, sans-serif";
export const SMALL = "11px Roboto, Arial, sans-serif";

const MOST_PIXELS = 16000; // of a canvas's side: with more, browsers show nothing

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function clear(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// A canvas's context with one unit per CSS pixel.
export function context(canvas, width, height, background) {
  const ratio = Math.min(window.devicePixelRatio || 1, MOST_PIXELS / Math.max(width, height));
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    [canvas.width, canvas.height] = [w, h];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  // Opaque: a picture that is blended with what is behind it takes longer to show.
  const c = canvas.getContext("2d", {alpha: false});
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.fillStyle = background;
  c.fillRect(0, 0, width, height);
  return c;
}

// Text cut in its middle so that it is at most `width` wide: beginnings and ends tell ops and devices apart.
export function fitted(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  const cut = (n) => `${text.slice(0, Math.ceil(n / 2))}…${text.slice(text.length - Math.floor(n / 2))}`;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? cut(low) : "";
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

// "/job:localhost/replica:0/task:0/device:GPU:0" → "GPU:0" where all devices are of one process, else "worker 0 CPU:0".
export function shortDevices(names) {
  const parsed = names.map((name) => /^\/job:([^/]+)\/replica:\d+\/task:(\d+)\/device:(.+)$/.exec(name));
  const processes = new Set(parsed.map((p) => p && `${p[1]} ${p[2]}`));
  return names.map((name, i) => (!parsed[i] ? name : processes.size === 1 ? parsed[i][3] : `${parsed[i][1]} ${parsed[i][2]} ${parsed[i][3]}`));
}

// What has the focus below a node, so that it can be given back when all below has been made anew; null: nothing has it.
export function focused(node) {
  const active = document.activeElement;
  if (!active || !node.contains(active)) return null;
  const named = active.id ? `#${active.id}` : active.getAttribute("aria-label") ? `[aria-label="${CSS.escape(active.getAttribute("aria-label"))}"]` : null;
  return {selector: named, text: active.textContent, selection: active.type === "search" ? [active.selectionStart, active.selectionEnd] : null};
}

export function refocus(node, was) {
  if (!was || node.contains(document.activeElement)) return;
  const found = was.selector ? node.querySelector(was.selector) : [...node.querySelectorAll("button, a")].find((other) => other.textContent === was.text);
  found?.focus();
  if (found && was.selection) found.setSelectionRange(...was.selection);
}
