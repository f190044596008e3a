// Where TensorBoard begins: it imports this module into a frame of its own and calls render().

import {App} from "./app.js";
import {ServerData} from "./data.js";

// The frame is empty but for this module; TensorBoard's theme is a class of the page around it.
function followTheme(app) {
  let body = null;
  try {
    body = window.parent !== window ? window.parent.document.body : null;
  } catch {
    // Another origin: the system's setting counts.
  }
  if (!body) return;
  const follow = () => {
    document.documentElement.dataset.theme = body.classList.contains("dark-mode") ? "dark" : "light";
    app.recolor();
  };
  new MutationObserver(follow).observe(body, {attributes: true, attributeFilter: ["class"]});
  follow();
}

export async function render() {
  const base = new URL(".", import.meta.url);
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("style.css", base).href;
  document.head.append(style);
  document.documentElement.lang = "en";
  const root = document.createElement("div");
  root.className = "regal";
  document.body.append(root);
  const app = new App(root, new ServerData(new URL("../", base).href));
  followTheme(app);
  if (window.frameElement) window.frameElement.reload = () => app.reload();
  await app.start();
}
