// Drives the tab REGAL in Chromium and compares what it shows with the plan files: node views.mjs ARGUMENTS.json
//
// Arguments: url (of TensorBoard), chromium, screenshots (a directory), expected: {functions, plan: {…}, other}, see test_browser.py.

import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";

const args = JSON.parse(readFileSync(process.argv[2], "utf8"));
const {chromium} = createRequire(`${args.modules}/`)("playwright-core");
const browser = await chromium.launch({executablePath: args.chromium, args: ["--no-sandbox", "--disable-gpu"]});
const page = await browser.newPage({viewport: {width: 1280, height: 900}});
const complaints = [];
// TensorBoard's own: a library that is loaded twice, and fonts that it asks for without its path prefix.
const known = /Multiple instances of Three\.js|404 .*\/font-roboto\//;
page.on("console", (message) => {
  const text = `${message.text()} ${message.location().url}`;
  if (["error", "warning"].includes(message.type()) && !known.test(text)) complaints.push(text);
});
page.on("pageerror", (error) => complaints.push(String(error)));
await page.addInitScript(() => {
  document.addEventListener("securitypolicyviolation", (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
});

const plan = args.expected.plan;

async function frame() {
  await page.waitForFunction(() => [...document.querySelectorAll("iframe")].some((f) => f.src.includes("plugin_entry") && f.contentDocument?.querySelector(".regal")));
  const found = page.frames().find((f) => f.url().includes("plugin_entry") && f.url().includes("tf_regal"));
  await found.waitForSelector(".list table tbody tr");
  return found;
}

const shot = (name) => page.screenshot({path: `${args.screenshots}/${name}.png`});
const UNITS = {ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, MB: 1e6, GB: 1e9};

// "1.65 ms" → 1650000
function value(text) {
  const [, number, unit] = /([\d.]+) (ns|µs|ms|s|B|kB|MB|GB)\b/.exec(text);
  return Number(number) * UNITS[unit];
}

function near(text, expected) {
  assert.ok(Math.abs(value(text) - expected) <= 1e-3 * expected + 1, `${text} is not ${expected}`);
}

try {
  await page.goto(`${args.url}#tf_regal`);
  const tab = await frame();
  const canvas = tab.locator("canvas.timeline-canvas");
  const view = async () => (await canvas.getAttribute("data-view")).split(" ").map(Number);
  const text = (selector) => tab.locator(selector).innerText();
  const waitFor = (check, argument) => tab.waitForFunction(check, argument);

  // TensorBoard's own button; changed: the list is another one than before.
  let changes = 0;
  const reload = async (changed = false, byButton = true) => {
    if (changed) changes++;
    const answer = page.waitForResponse((response) => response.url().endsWith("/plans"));
    await page.route("**/tf_regal/plans", async (route) => {
      const response = await route.fetch(), json = await response.json();
      await route.fulfill({response, json: {...json, plans: json.plans.map((plan) => ({...plan, changes}))}});
    }, {times: 1});
    // Without the button, as every some seconds by itself: whoever types goes on.
    if (byButton) await page.locator("button.reload-button").click();
    else await page.evaluate(() => [...document.querySelectorAll("iframe")].find((f) => f.src.includes("tf_regal")).reload());
    await answer;
    await page.waitForTimeout(700);
  };
  await reload();

  // The list.
  const listed = await tab.locator(".list tbody tr").allInnerTexts();
  for (const {name, status} of args.expected.functions) {
    assert.ok(listed.some((row) => row.includes(name) && row.includes(status)), `${name} ${status} is not in ${listed}`);
  }

  // The chosen plan and its figures.
  await tab.locator(".list tbody button", {hasText: plan.name}).first().click();
  const current = tab.locator(".list tr[aria-current]");
  await waitFor((name) => document.querySelector(".list tr[aria-current]")?.textContent.includes(name), plan.name);
  assert.equal(await current.count(), 1);
  const figures = (await current.innerText()).split("\t");
  near(figures[3], plan.default_makespan_ns);
  near(figures[4], plan.makespan_ns);
  await waitFor(() => document.querySelector("canvas.timeline-canvas")?.dataset.tracks?.includes("Planned|"));
  await waitFor(() => document.querySelectorAll(".legend .swatch").length > 0);
  const cards = await tab.locator(".card").allInnerTexts();
  near(cards.find((c) => c.startsWith("Time per call, predicted")).split("\n")[1], plan.makespan_ns);
  near(cards.find((c) => c.startsWith("Largest peak")).split("\n")[1], plan.peak_bytes);
  near(cards.find((c) => c.startsWith("Largest peak")).split("default's")[1], plan.default_peak_bytes);
  near(cards.find((c) => c.startsWith("Time per call, predicted")).split("default's")[1], plan.default_makespan_ns);
  near(cards.find((c) => c.startsWith("Above")).split("less than")[1], plan.bound_ns);
  await shot("timeline-1280");

  // A click on the longest op's bar shows what it is.
  const box = await canvas.boundingBox();
  const [from, to] = await view();
  const x = 168 + ((plan.longest.start_ns + plan.longest.end_ns) / 2 - from) / (to - from) * (box.width - 168 - 12);
  await canvas.click({position: {x, y: plan.longest.row_y}});
  assert.equal(await text(".side .op-name"), plan.longest.name);
  near((await text(".side")).split("Runs")[1], plan.longest.end_ns - plan.longest.start_ns);
  const neighbours = await tab.locator(".side .neighbours button").allInnerTexts();
  assert.deepEqual(new Set(neighbours), new Set(plan.longest.neighbours));
  const said = await tab.locator("[aria-live=polite]").innerText();
  assert.ok(said.includes(plan.longest.name) && said.includes("waited for"), said);
  await shot("selected-1280");

  // The tip says the same, and goes on to what it gives.
  await canvas.hover({position: {x, y: plan.longest.row_y}});
  const tip = await text(".tip");
  for (const part of [plan.longest.name, plan.outputs, "waited for"]) assert.ok(tip.includes(part), tip);
  near(tip, plan.longest.end_ns - plan.longest.start_ns);
  await shot("tip-1280");

  // Keys go through a row's bars, whatever is selected; a link takes the focus to what it leads to.
  await canvas.focus();
  await page.keyboard.press("Escape");
  assert.match(await text(".side"), /Longest idle times|Select an op/);
  await page.keyboard.press(".");
  const firstName = await text(".side .op-name");
  await page.keyboard.press(".");
  assert.notEqual(await text(".side .op-name"), firstName);
  await page.keyboard.press(",");
  assert.equal(await text(".side .op-name"), firstName);
  await page.keyboard.press("0");
  await canvas.click({position: {x, y: plan.longest.row_y}});
  await tab.locator(".side .neighbours button").first().click();
  assert.equal(await tab.evaluate(() => document.activeElement.className), "op-name");

  // Zoom and pan: keys, wheel, buttons.
  await canvas.focus();
  await page.keyboard.press("0"); // the link may have zoomed in
  await waitFor((before) => document.querySelector("canvas.timeline-canvas").dataset.view === before, `${from} ${to}`);
  await page.keyboard.press("+");
  await waitFor((before) => document.querySelector("canvas.timeline-canvas").dataset.view !== before, `${from} ${to}`);
  const closer = await view();
  assert.ok(closer[1] - closer[0] < 0.75 * (to - from));
  await page.keyboard.press("ArrowRight");
  await waitFor((before) => document.querySelector("canvas.timeline-canvas").dataset.view !== before, closer.join(" "));
  const right = await view();
  assert.ok(right[0] > closer[0] && Math.abs(right[1] - right[0] - (closer[1] - closer[0])) < 1);
  await page.keyboard.press("0");
  await waitFor((before) => document.querySelector("canvas.timeline-canvas").dataset.view === before, `${from} ${to}`);
  await page.mouse.move(box.x + 600, box.y + 60);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  await waitFor((before) => document.querySelector("canvas.timeline-canvas").dataset.view !== before, `${from} ${to}`);
  await tab.getByText("Show all").click();
  await waitFor((before) => document.querySelector("canvas.timeline-canvas").dataset.view === before, `${from} ${to}`);

  // Search by type, and from match to match.
  await tab.locator("input[type=search]").fill(plan.search.text);
  assert.match(await text(".toolbar [role=status]"), new RegExp(`^${plan.search.count} found`));
  await tab.locator("input[type=search]").press("Enter");
  assert.equal(await text(".side .op-name"), plan.search.first);
  await shot("search-1280");

  // Colours: by what they stand for.
  for (const by of ["layer", "device", "cost", "type"]) await tab.locator("select[aria-label='Colour by']").selectOption(by);

  // The table of ops: sorted by duration the longest op is first.
  await tab.locator("#tab-ops").click();
  await tab.locator("th button", {hasText: /^Takes/}).click();
  const first = (await tab.locator("#panel tbody tr").first().innerText()).split("\t");
  near(first[4], plan.longest.end_ns - plan.longest.start_ns);
  assert.equal((await tab.locator("#panel tbody tr", {hasText: plan.longest.name}).first().innerText()).split("\t")[5], plan.outputs);
  const next = tab.locator("#panel .pages button", {hasText: "Next"});
  if (await next.count()) {
    await next.click();
    assert.ok(["Next", "Previous"].includes(await tab.evaluate(() => document.activeElement.textContent)));
  }
  assert.equal(await tab.locator("#panel th[aria-sort=descending]").count(), 1);
  await shot("ops-1280");

  // Peaks, the search, the measurement, and about.
  await tab.locator("#tab-memory").click();
  assert.ok((await text("#panel")).includes("As planned"));
  near((await text("#panel")).split("Peak of")[1], plan.first_peak_bytes);
  assert.equal(await tab.locator("#panel .table-box").last().locator("tbody tr").count(), Math.min(100, plan.memory_steps));
  await shot("memory-1280");
  await tab.locator("#tab-search").click();
  assert.ok((await text("#panel")).includes(plan.method));
  assert.equal(await tab.locator("#panel .table-box").last().locator("tbody tr").count(), Math.min(100, plan.seeds));
  await shot("curves-1280");
  await tab.locator("#tab-measured").click();
  if (plan.measured_ns) near((await text("#panel")).split("One call took")[1], plan.measured_ns);
  else assert.ok((await text("#panel")).includes("Nothing was measured"));
  await shot("measured-1280");
  await tab.locator("#tab-notes").click();
  assert.ok((await text("#panel")).includes(plan.fingerprint));

  // Two plans side by side.
  await tab.locator("#tab-timeline").click();
  await tab.locator("select[aria-label='Compare with']").selectOption({index: 1});
  await waitFor(() => (document.querySelector("canvas.timeline-canvas").dataset.tracks.match(/: planned/g) || []).length === 2);
  await waitFor(() => !document.querySelector("canvas.timeline-canvas").dataset.tracks.includes("(binned)"));
  assert.ok(!(await tab.locator("input[name=default]").isChecked()));
  await tab.locator("input[name=default]").check();
  await waitFor(() => (document.querySelector("canvas.timeline-canvas").dataset.tracks.match(/: default/g) || []).length === 2);
  await shot("compare-1280");
  await reload(true);
  await waitFor(() => {
    const {tracks} = document.querySelector("canvas.timeline-canvas").dataset;
    return (tracks.match(/: planned/g) || []).length === 2 && !tracks.includes("(binned)");
  });
  await tab.locator("input[name=default]").uncheck();

  // The theme follows TensorBoard's.
  await page.evaluate(() => document.body.classList.add("dark-mode"));
  await waitFor(() => document.documentElement.dataset.theme === "dark");
  assert.equal(await tab.evaluate(() => getComputedStyle(document.querySelector(".regal")).backgroundColor), "rgb(32, 33, 36)");
  await page.setViewportSize({width: 3840, height: 2160});
  await page.waitForTimeout(300);
  await shot("dark-3840");
  await page.evaluate(() => document.body.classList.remove("dark-mode"));
  await waitFor(() => document.documentElement.dataset.theme === "light");
  await page.setViewportSize({width: 700, height: 900});
  await page.waitForTimeout(300);
  await shot("narrow-700");
  await page.setViewportSize({width: 1280, height: 900});

  // TensorBoard's reload button keeps what is chosen, selected and zoomed into.
  await tab.locator("input[type=search]").press("Enter");
  await canvas.focus();
  await page.keyboard.press("+");
  await page.waitForTimeout(100);
  const zoomedView = await canvas.getAttribute("data-view"), selectedName = await text(".side .op-name");
  await tab.evaluate(() => (document.querySelector(".plan-head").dataset.old = "yes"));
  await reload();
  assert.equal(await tab.locator(".plan-head[data-old]").count(), 1, "nothing is new: nothing is painted again");
  await canvas.focus();
  await reload(true, false);
  await waitFor((name) => document.querySelector(".plan-head:not([data-old]) h2")?.textContent.includes(name), plan.name);
  await waitFor((before) => document.querySelector("canvas.timeline-canvas")?.dataset.view === before, zoomedView);
  await waitFor((name) => document.querySelector(".side .op-name")?.textContent === name, selectedName);
  await waitFor(() => document.activeElement.className === "timeline-canvas");

  // Downloads.
  for (const link of await tab.locator(".downloads a").all()) {
    const answer = await tab.evaluate(async (href) => (await fetch(href)).json(), await link.getAttribute("href"));
    assert.ok(answer.data?.fingerprint === plan.fingerprint || answer.traceEvents.length > 0);
  }

  // Transfers: a table, and what is known of one; sorting stays where the plan is loaded again.
  const {moving} = args.expected;
  await tab.locator(".list tbody button", {hasText: moving.name}).first().click();
  await waitFor((name) => document.querySelector(".plan-head h2")?.textContent.includes(name), moving.name);
  await waitFor(() => document.querySelectorAll(".legend .swatch").length > 0);
  await tab.locator("#tab-transfers").click();
  assert.ok((await text("#panel")).includes(`${moving.transfers} transfers`));
  await tab.locator("th button", {hasText: "Bytes"}).first().click();
  await shot("transfers-1280");
  const row = (await tab.locator("#panel tbody tr").first().innerText()).split("\t");
  assert.deepEqual([row[1], row[2]], [moving.from, moving.to]);
  near(row[3], moving.bytes);
  await reload(true);
  await waitFor(() => document.querySelector("#panel th[aria-sort=descending]")?.textContent.startsWith("Bytes"));
  await tab.locator("#panel tbody button", {hasText: moving.maker}).first().click();
  assert.equal(await text(".side .op-name"), `Transfer of ${moving.maker}`);
  const side = await text(".side");
  near(side.split("Bytes")[1], moving.bytes);
  near(side.split("Runs")[1], moving.took_ns);
  assert.ok(side.includes("Is taken by (") && !side.includes("Is taken by (0)"), side);
  await shot("transfer-1280");

  // Compared with a plan for other devices, and back; the selection goes where it cannot stay.
  await tab.locator("select[aria-label='Compare with']").selectOption({label: (await tab.locator("select[aria-label='Compare with'] option").allInnerTexts())
    .find((option) => option.includes(args.expected.plan.topology))});
  await waitFor(() => (document.querySelector("canvas.timeline-canvas").dataset.tracks.match(/: planned/g) || []).length === 2);
  await tab.locator("select[aria-label='Compare with']").selectOption({index: 0});
  await waitFor(() => document.querySelector("canvas.timeline-canvas").dataset.tracks === "Planned|Default");

  // A function without a plan: what the list says of it stays after a reload.
  await tab.locator(".list tbody tr", {hasText: "skipped"}).locator("button").first().click();
  const why = await text(".main");
  assert.ok(why.includes("skipped"));
  await reload(true);
  assert.equal(await text(".main"), why);
  // A plan that was chosen before, and comes late, does not take its place.
  await page.route("**/piece?*overview.json", async (route) => {
    await new Promise((done) => setTimeout(done, 500));
    await route.continue();
  }, {times: 1});
  await tab.locator(".list tbody button", {hasText: moving.name}).first().click();
  await tab.locator(".list tbody tr", {hasText: "skipped"}).locator("button").first().click();
  await page.waitForTimeout(1000);
  assert.equal(await text(".main"), why);

  // Hostile names are text.
  await tab.locator(".list tbody button", {hasText: "onerror"}).first().click();
  await waitFor(() => document.querySelector(".plan-head h2")?.textContent.includes("onerror"));
  await waitFor(() => document.querySelectorAll(".legend .swatch").length > 0);
  await tab.locator("#tab-ops").click();
  await tab.locator("th button", {hasText: /^Op/}).first().click();
  assert.ok((await text("#panel")).includes("<img src=x onerror="));
  assert.equal(await tab.evaluate(() => document.querySelectorAll("img").length), 0);
  assert.ok(!/^[12]$/.test(await page.title()) && !/^[12]$/.test(await tab.evaluate(() => document.title)));
  assert.deepEqual(complaints, []);
  console.log("ok");
} finally {
  await shot("last").catch(() => null);
  await browser.close();
}
