import assert from "node:assert/strict";
import test from "node:test";

import {coarse, draw, hit, steps, visible} from "./bars.js";
import {textIndex} from "./colors.js";
import {EmbeddedData, unpack} from "./data.js";
import {Graph, layerOf, layers, matches} from "./graph.js";
import {barOf, rowOf, takers, transferOf, transfersOf, waitOf} from "./waits.js";
import {PlanView} from "./plan.js";
import {byteText, countText, moved, percentText, ticks, tickText, timeText, zoomed} from "./scales.js";

// A generator of numbers that is the same in every run.
function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function row(count, seed) {
  const next = random(seed), start = new Float64Array(count), end = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    at += next() < 0.5 ? 0 : Math.floor(next() * 50);
    start[i] = at;
    at += Math.floor(next() * 40);
    end[i] = at;
  }
  return [start, end, at];
}

test("times and bytes in words", () => {
  assert.equal(timeText(0), "0 ns");
  assert.equal(timeText(1500), "1.5 µs");
  assert.equal(timeText(2_872_000), "2.872 ms");
  assert.equal(timeText(12_345_678_901), "12.35 s");
  assert.equal(byteText(188_743_680), "188.7 MB");
  assert.equal(byteText(999), "999 B");
  assert.equal(countText(1234567), "1\u202f234\u202f567");
  assert.equal(percentText(-0.425), "−42.5 %");
  assert.equal(percentText(0.1), "+10 %");
  assert.equal(percentText(null), "–");
  assert.equal(percentText(0.0001), "0 %");
});

test("ticks are round, inside and no more than asked for", () => {
  const next = random(1);
  for (let i = 0; i < 500; i++) {
    const from = next() * 1e9, to = from + 10 ** (next() * 9), most = 1 + Math.floor(next() * 12);
    const found = ticks(from, to, most);
    assert.ok(found.length <= most + 1);
    assert.ok(found.every((at) => at >= from - 1e-3 && at <= to + 1e-3));
    const texts = found.map((at) => tickText(at, found.length > 1 ? found[1] - found[0] : to - from));
    assert.equal(new Set(texts).size, texts.length, `${texts}`);
  }
  assert.deepEqual(ticks(0, 100, 5), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ticks(5, 5, 5), []);
});

test("zooming keeps what is under the pointer and stays inside", () => {
  const next = random(2);
  for (let i = 0; i < 500; i++) {
    const end = 1e6, from = next() * 5e5, view = {from, to: from + 100 + next() * (end - from - 100)};
    const at = view.from + next() * (view.to - view.from);
    const closer = zoomed(view, 0.5, at, end);
    assert.ok(closer.from >= 0 && closer.to <= end + 1e-6);
    const share = (v) => (at - v.from) / (v.to - v.from);
    assert.ok(Math.abs(share(view) - share(closer)) < 1e-6);
    const out = zoomed(view, 1e9, at, end);
    assert.ok(Math.abs(out.from) < 1e-6 && Math.abs(out.to - end) < 1e-6);
    const pushed = moved(view, (next() - 0.5) * 4e6, end);
    assert.ok(pushed.from >= 0 && pushed.to <= end + 1e-6 && Math.abs(pushed.to - pushed.from - (view.to - view.from)) < 1e-6);
  }
});

test("visible bars are those that reach into the view", () => {
  for (let seed = 0; seed < 50; seed++) {
    const [start, end, total] = row(200, seed), next = random(seed + 1000);
    const from = next() * total, to = from + next() * (total - from);
    const [first, last] = visible(start, end, 10, 190, from, to);
    for (let i = 10; i < 190; i++) {
      const inside = end[i] > from && start[i] <= to;
      assert.equal(i >= first && i < last, inside, `bar ${i} of seed ${seed}`);
    }
  }
});

test("what is drawn covers every visible bar, within the plot, and few enough to draw", () => {
  for (let seed = 0; seed < 30; seed++) {
    const [start, end, total] = row(3000, seed), view = {from: 0, to: total}, pixels = 300;
    const drawn = [];
    draw(start, end, 0, 3000, view, pixels, (x, width, bar) => drawn.push([x, width, bar]));
    assert.ok(drawn.length <= 2 * pixels + 2);
    const scale = pixels / total;
    for (let i = 0; i < 3000; i++) {
      const middle = ((start[i] + end[i]) / 2) * scale;
      assert.ok(drawn.some(([x, width]) => x - 1 <= middle && middle <= x + width + 1), `bar ${i}`);
    }
    assert.ok(drawn.every(([x, width]) => x >= 0 && x + width <= pixels + 1 && width > 0));
  }
});

test("the coarse picture shows what the exact one does where pixels are wide", () => {
  for (let seed = 0; seed < 10; seed++) {
    const [start, end, total] = row(20000, seed), pixels = 200;
    const rough = coarse(start, end, 0, 20000, total, 1000);
    assert.ok(rough.bar.length <= 2002);
    const covered = (s, e, lo, hi) => {
      const filled = new Float64Array(pixels);
      draw(s, e, lo, hi, {from: 0, to: total}, pixels, (x, width) => {
        for (let p = Math.floor(x); p < Math.min(pixels, Math.ceil(x + width)); p++) filled[p] = 1;
      });
      return filled.reduce((a, b) => a + b);
    };
    assert.ok(Math.abs(covered(start, end, 0, 20000) - covered(rough.start, rough.end, 0, rough.bar.length)) <= 0.05 * pixels);
    for (let i = 0; i < rough.bar.length; i++) assert.ok(start[rough.bar[i]] <= rough.end[i] && end[rough.bar[i]] >= rough.start[i]);
  }
});

test("a curve keeps its highest value on every scale, and what it has at the edges", () => {
  for (let seed = 0; seed < 20; seed++) {
    const next = random(seed), times = new Float64Array(500), values = new Float64Array(500);
    let at = 0;
    for (let i = 0; i < 500; i++) [times[i], values[i]] = [at += next() < 0.3 ? 0 : Math.floor(next() * 20), Math.floor(next() * 1000)];
    const from = next() * at * 0.5, view = {from, to: from + (at - from) * next() + 1}, {initial, found} = steps(times, values, 0, 500, view, 97, 5);
    const before = [...times.keys()].filter((i) => times[i] <= view.from), inside = [...times.keys()].filter((i) => times[i] > view.from && times[i] < view.to);
    assert.equal(initial, before.length ? values[before.at(-1)] : 5);
    const highest = Math.max(-1, ...inside.map((i) => values[i])), drawn = Math.max(-1, ...found.map((f) => f[2]));
    assert.ok(drawn >= highest);
    assert.ok(found.every(([x, low, high, last], k) => low <= last && last <= high && x <= 97 && (k === 0 || x > found[k - 1][0])));
  }
});

test("wide bars are drawn as they are", () => {
  const drawn = [];
  draw(Float64Array.of(0, 50), Float64Array.of(50, 100), 0, 2, {from: 25, to: 100}, 75, (...bar) => drawn.push(bar));
  assert.deepEqual(drawn, [[0, 25, 0], [25, 50, 1]]);
});

test("the pointer finds the bar under it, or the nearest within reach", () => {
  const start = Float64Array.of(0, 100, 200), end = Float64Array.of(50, 150, 250);
  assert.equal(hit(start, end, 0, 3, 120, 0), 1);
  assert.equal(hit(start, end, 0, 3, 60, 5), -1);
  assert.equal(hit(start, end, 0, 3, 53, 5), 0);
  assert.equal(hit(start, end, 0, 3, 97, 5), 1);
  assert.equal(hit(start, end, 1, 1, 120, 5), -1);
  for (let seed = 0; seed < 20; seed++) {
    const [s, e, total] = row(100, seed), next = random(seed);
    const at = next() * total, found = hit(s, e, 0, 100, at, 0);
    const inside = [...s.keys()].filter((i) => s[i] <= at && at <= e[i]);
    assert.equal(found >= 0, inside.length > 0);
    if (found >= 0) assert.ok(inside.includes(found));
  }
});

test("neighbours of ops", () => {
  // Op 0 makes tensors 0 and 1; op 1 takes 0, op 2 takes 0 and 1 and waits for 1; the plan lets 0 go before 2.
  const graph = new Graph({
    type: Int32Array.of(0, 1, 1), producer: Int32Array.of(0, 0), size: Float64Array.of(8, 16), input_ptr: Int32Array.of(0, 0, 1, 3),
    input_idx: Int32Array.of(0, 0, 1), control_ptr: Int32Array.of(0, 0, 0, 1), control_idx: Int32Array.of(1), added_before: Int32Array.of(0),
    added_after: Int32Array.of(2),
  });
  assert.deepEqual(graph.predecessors(2), [
    {op: 0, bytes: 8, kind: "data"}, {op: 0, bytes: 16, kind: "data"}, {op: 1, bytes: 0, kind: "control"}, {op: 0, bytes: 0, kind: "added"}]);
  assert.deepEqual(graph.successors(0), [
    {op: 1, bytes: 8, kind: "data"}, {op: 2, bytes: 8, kind: "data"}, {op: 2, bytes: 16, kind: "data"}, {op: 2, bytes: 0, kind: "added"}]);
  assert.deepEqual(graph.successors(1), [{op: 2, bytes: 0, kind: "control"}]);
  assert.equal(graph.outputBytes(0), 24);
  assert.equal(graph.outputBytes(2), 0);
});

test("search by name or type, whatever the case", () => {
  const names = ["tower/MatMul", "tower/Relu", "head/bias"], types = ["BiasAdd", "MatMul", "Relu"], typeOf = Int32Array.of(1, 2, 0);
  assert.deepEqual([...matches(names, types, typeOf, "TOWER")], [0, 1]);
  assert.deepEqual([...matches(names, types, typeOf, "add")], [2]);
  assert.deepEqual([...matches(names, types, typeOf, "  ")], []);
});

test("layers", () => {
  assert.equal(layerOf("a/b/c/d/op"), "a/b/c");
  assert.equal(layerOf("op"), "");
  const found = layers(["a/x", "b/y", "a/z"]);
  assert.deepEqual([found.labels, [...found.of]], [["a", "b"], [0, 1, 0]]);
  assert.equal(textIndex("a"), textIndex("a"));
});

test("pieces come out of the page as they went in", async () => {
  const header = JSON.stringify({arrays: [["x", "f64", 2, 0], ["y", "i32", 1, 16]]}), padded = header.padEnd(Math.ceil((header.length + 4) / 8) * 8 - 4);
  const buffer = new ArrayBuffer(4 + padded.length + 24), view = new DataView(buffer);
  view.setUint32(0, padded.length, true);
  new Uint8Array(buffer).set(new TextEncoder().encode(padded), 4);
  view.setFloat64(4 + padded.length, 1.5, true);
  view.setFloat64(12 + padded.length, -2, true);
  view.setInt32(20 + padded.length, 7, true);
  assert.deepEqual(unpack(buffer), {x: Float64Array.of(1.5, -2), y: Int32Array.of(7)});
  const base64 = Buffer.from(buffer).toString("base64");
  const data = new EmbeddedData({plans: [{id: "p"}], pieces: {p: {"a.bin": base64, "a.json": Buffer.from('{"k": "ü"}').toString("base64")}}});
  assert.deepEqual(await data.piece("p", "a.bin"), {x: Float64Array.of(1.5, -2), y: Int32Array.of(7)});
  assert.deepEqual(await data.piece("p", "a.json"), {k: "ü"});
});

// Device 0 runs op 0 and then op 1; both outputs go to device 1, one after the other, for op 2; between the rows of the devices and the link is an empty one.
function moving() {
  const columns = {
    row_ptr: Int32Array.of(0, 2, 2, 3, 5), op: Int32Array.of(0, 1, 2, 0, 1), start: Float64Array.of(0, 10, 60, 10, 30), end: Float64Array.of(10, 20, 70, 30, 50),
    bytes: Float64Array.of(0, 0, 0, 100, 200), transfer: Uint8Array.of(0, 0, 0, 1, 1), tensor: Int32Array.of(-1, -1, -1, 0, 1), device: Int32Array.of(0, 0, 1),
    op_start: Float64Array.of(0, 10, 60), op_end: Float64Array.of(10, 20, 70), ready: Float64Array.of(0, 0, 50), reason: Uint8Array.of(0, 1, 2),
    cause: Int32Array.of(-1, 0, 1), idle: Float64Array.of(0, 0, 60),
  };
  const rows = [{kind: "device", device: 0, lane: 0}, {kind: "device", device: 0, lane: 1}, {kind: "device", device: 1, lane: 0}, {kind: "link", source: 0, destination: 1}];
  const graph = new Graph({
    type: Int32Array.of(0, 0, 0), producer: Int32Array.of(0, 1), size: Float64Array.of(100, 200), input_ptr: Int32Array.of(0, 0, 0, 2), input_idx: Int32Array.of(0, 1),
    control_ptr: Int32Array.of(0, 0, 0, 0), control_idx: new Int32Array(0), added_before: new Int32Array(0), added_after: new Int32Array(0),
  });
  return {columns: {planned: columns}, graph, overview: {has_details: true, reasons: ["start", "lane", "transfer"], schedules: {planned: {rows}}}};
}

test("bars know their rows, and ops their bars", () => {
  const {planned} = moving().columns;
  assert.deepEqual([0, 1, 2, 3, 4].map((bar) => rowOf(planned, bar)), [0, 0, 2, 3, 3]);
  assert.deepEqual([0, 1, 2].map((op) => barOf(planned, op)), [0, 1, 2]);
});

test("what a transfer moves, between which devices, and what it waited for", () => {
  const plan = moving(), [first, second] = transfersOf(plan, "planned");
  assert.deepEqual(first, {schedule: "planned", bar: 3, op: 0, tensor: 0, source: 0, destination: 1, bytes: 100, start: 10, end: 30, wait: 0, behind: -1});
  assert.deepEqual(second, {schedule: "planned", bar: 4, op: 1, tensor: 1, source: 0, destination: 1, bytes: 200, start: 30, end: 50, wait: 10, behind: 0});
  assert.deepEqual(transferOf(plan, "planned", 4), second);
  assert.deepEqual(takers(plan, second), [2]);
  assert.deepEqual(takers(plan, {...second, tensor: -1}), []);
  assert.deepEqual(takers({...plan, graph: null}, second), []);
});

test("why an op waited", () => {
  const plan = moving();
  assert.deepEqual(waitOf(plan, "planned", 0), {words: "nothing: it could begin at once", cause: -1, ready: 0, idle: 0});
  assert.equal(waitOf(plan, "planned", 1).words, "a free lane of its device, taken by ");
  assert.deepEqual(waitOf(plan, "planned", 2), {words: "the transfer of what comes from ", cause: 1, ready: 50, idle: 60});
  assert.equal(waitOf(plan, "default", 2), null);
  assert.equal(waitOf({...plan, overview: {...plan.overview, has_details: false}}, "planned", 2), null);
});

test("beside another plan a type has that plan's colour", () => {
  const view = (types, colors) => Object.assign(new PlanView(null, {id: types.join()}), {overview: {types}, colorOfType: colors, graph: {}});
  const one = view(["Add", "MatMul"], [1, 0]), other = view(["Add", "Conv2D", "MatMul"], [0, 2, 1]);
  assert.deepEqual(one.typeColors(one), [1, 0]);
  assert.deepEqual(other.typeColors(one), [1, 2, 0]);
  assert.deepEqual(other.typeColors(null), [0, 2, 1]);
});
