// node tensorboard_scale.mjs URL CHROMIUM MODULES REPEATS: figures of tensorboard_scale.py as JSON.

import {createRequire} from "node:module";

const [url, executablePath, modules, repeats] = process.argv.slice(2);
const {chromium} = createRequire(`${modules}/`)("playwright-core");
const found = {first: [], all: [], names: [], near: [], far: [], paint: []};
const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--disable-gpu"]});
for (let i = 0; i < Number(repeats); i++) {
  const page = await browser.newPage({viewport: {width: 1280, height: 900}});
  // The tab's own page, from the beginning of its navigation: its modules, the list, and the plan.
  await page.goto(`${url}data/plugin_entry.html?name=tf_regal`);
  const times = await page.evaluate(async () => {
    const times = {};
    while (!times.names) {
      const canvas = document.querySelector("canvas.timeline-canvas"), now = performance.now() / 1000;
      if (canvas?.dataset.tracks) {
        times.first ??= now;
        if (!canvas.dataset.tracks.includes("(binned)")) times.all ??= now;
        if (times.all && document.querySelector(".side .neighbours")) times.names = now;
      }
      await new Promise(requestAnimationFrame);
    }
    return times;
  });
  for (const key of ["first", "all", "names"]) found[key].push(times[key]);
  const frames = (presses) => page.evaluate(async (count) => {
    const canvas = document.querySelector("canvas.timeline-canvas");
    const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, cancelable: true}));
    key("0");
    for (let i = 0; i < count; i++) key("+");
    await new Promise(requestAnimationFrame);
    let drawn = 0, right = true;
    const began = performance.now();
    while (performance.now() - began < 2000) {
      const before = canvas.dataset.view;
      key(right ? "ArrowRight" : "ArrowLeft");
      await new Promise(requestAnimationFrame);
      await new Promise((done) => setTimeout(done, 0));
      if (canvas.dataset.view === before) right = !right;
      else drawn++;
    }
    return {fps: drawn / ((performance.now() - began) / 1000), paint: Number(canvas.dataset.paintMs)};
  }, presses);
  found.near.push((await frames(13)).fps);
  const far = await frames(2);
  found.far.push(far.fps);
  found.paint.push(far.paint);
  await page.close();
}
await browser.close();
console.log(JSON.stringify(found));
