// Where the HTML file begins: its data is in the page.

import {App} from "./app.js";
import {EmbeddedData} from "./data.js";

export function start() {
  const content = JSON.parse(document.getElementById("tf-regal-data").textContent);
  new App(document.getElementById("regal"), new EmbeddedData(content)).start();
}
