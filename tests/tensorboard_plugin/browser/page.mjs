// Opens the HTML file of a plan in Chromium: node page.mjs ARGUMENTS.json; see test_browser.py.

import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";

const args = JSON.parse(readFileSync(process.argv[2], "utf8"));
const {chromium} = createRequire(`${args.modules}/`)("playwright-core");
const browser = await chromium.launch({executablePath: args.chromium, args: ["--no-sandbox", "--disable-gpu"]});
const page = await browser.newPage({viewport: {width: 1280, height: 900}, colorScheme: "dark"});
const complaints = [];
page.on("console", (message) => complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("request", (request) => request.url() !== args.url && complaints.push(`asks for ${request.url()}`));
try {
  await page.goto(args.url);
  await page.waitForSelector(".side .neighbours");
  assert.equal(await page.locator("canvas.timeline-canvas").getAttribute("data-tracks"), args.measured ? "Planned|Default|Measured" : "Planned|Default");
  assert.ok((await page.locator(".card").first().innerText()).includes(args.makespan));
  assert.equal(await page.locator(".downloads a").count(), 0);
  for (const tab of ["memory", "transfers", "search", "measured", "ops", "notes"]) {
    await page.locator(`#tab-${tab}`).click();
    assert.ok((await page.locator("#panel").innerText()).length > 20, tab);
  }
  if (args.measured) {
    await page.locator("#tab-measured").click();
    assert.ok((await page.locator("#panel").innerText()).startsWith("One call took"));
  }
  await page.locator("#tab-ops").click();
  await page.locator("th button", {hasText: /^Op/}).first().click();
  assert.ok((await page.locator("#panel").innerText()).includes("<img src=x onerror="));
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.title(), "tf-regal plan");
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".regal")).backgroundColor), "rgb(32, 33, 36)");
  await page.screenshot({path: `${args.screenshots}/html-1280.png`});
  assert.deepEqual(complaints, []);
  console.log("ok");
} finally {
  await browser.close();
}
