// Memory over time, one chart per device, on the axis of the timeline.

import {steps} from "./bars.js";
import {fitted, FONT, LABELS, SMALL, TITLE} from "./dom.js";
import {byteText, ticks} from "./scales.js";

export const MEMORY_ROW = 84;
const DENSE = 400; // steps of a curve: more are drawn without dashes, which could not be seen

// timeline: where the charts and the tracks are, and the scale of time.
export function paintMemory(c, timeline) {
  if (!timeline.charts.length) return;
  const {colors} = timeline, y = timeline.memoryTitle;
  c.font = `600 ${FONT}`;
  c.fillStyle = colors.background;
  c.fillRect(0, y + 2, timeline.width, TITLE - 4);
  c.fillStyle = colors.text;
  c.fillText("Memory in use", 8, y + TITLE / 2);
  let x = 120;
  c.font = SMALL;
  for (const [index, track] of timeline.tracks.entries()) {
    if (!track.outline.memory.some((curve) => curve.length)) continue;
    c.strokeStyle = colorOf(colors, index);
    c.lineWidth = 2;
    c.setLineDash(index ? [5, 3] : []);
    c.beginPath();
    c.moveTo(x, y + TITLE / 2);
    c.lineTo(x + 22, y + TITLE / 2);
    c.stroke();
    c.setLineDash([]);
    c.lineWidth = 1;
    c.fillStyle = colors.text;
    c.fillText(track.title, x + 28, y + TITLE / 2);
    x += 44 + c.measureText(track.title).width;
  }
  for (const chart of timeline.charts) paintChart(c, timeline, chart);
}

function colorOf(colors, index) {
  return [colors.planned, colors.default, colors.accent][index % 3];
}

function paintChart(c, timeline, {y, height, device}) {
  const {tracks, colors, plot} = timeline;
  const {plan} = tracks.find((track) => track.plan.overview.devices.length > device);
  const info = plan.overview.devices[device];
  const largest = Math.max(1, ...tracks.map((track) => (track.outline.peaks[device] || [0, 0])[0]));
  // The capacity is drawn where it is near; far above it is said in words.
  const near = info.memory !== null && info.memory <= 1.6 * largest;
  const top = 1.12 * (near ? Math.max(largest, info.memory) : largest);
  const toY = (bytes) => y + height - (bytes / top) * height;
  c.fillStyle = colors.row;
  c.fillRect(LABELS, y, plot, height);
  c.fillStyle = colors.text;
  c.font = FONT;
  c.fillText(fitted(c, plan.devices[device], 84), 14, y + 8);
  c.fillStyle = colors.faint;
  c.font = SMALL;
  c.fillText(fitted(c, info.memory === null ? "no limit" : `of ${byteText(info.memory, 3)}`, 84), 14, y + 24);
  c.textAlign = "right";
  for (const bytes of ticks(0, top, 3)) c.fillText(byteText(bytes, 3), LABELS - 6, Math.max(toY(bytes), y + 6));
  c.textAlign = "left";
  if (near) {
    c.strokeStyle = c.fillStyle = colors.limit;
    c.setLineDash([2, 3]);
    c.beginPath();
    c.moveTo(LABELS, toY(info.memory));
    c.lineTo(LABELS + plot, toY(info.memory));
    c.stroke();
    c.setLineDash([]);
    c.fillText("capacity", LABELS + 4, toY(info.memory) - 7);
  }
  c.save();
  c.beginPath();
  c.rect(LABELS, y - 2, plot, height + 4);
  c.clip();
  // A compared plan may have fewer devices, and of a measurement there is no memory.
  const shown = (track) => (track.outline.memory[device] || []).length > 0;
  tracks.forEach((track, index) => shown(track) && paintCurve(c, timeline, track, index, device, toY));
  tracks.forEach((track, index) => shown(track) && paintPeak(c, timeline, track, index, device, toY));
  c.restore();
}

// The curve as [x, lowest, highest, last] by pixel, from its value at the left edge on.
function points(timeline, {outline, columns}, device) {
  const persistent = outline.persistent[device] || 0;
  if (columns) {
    return steps(columns.memory_ns, columns.memory_bytes, columns.memory_ptr[device], columns.memory_ptr[device + 1], timeline.view, timeline.plot, persistent);
  }
  const curve = outline.memory[device], bin = outline.end_ns / Math.max(1, curve.length);
  const ns = curve.map((_, i) => i * bin);
  return steps(ns, curve, 0, curve.length, timeline.view, timeline.plot, persistent);
}

function paintCurve(c, timeline, track, index, device, toY) {
  const {initial, found} = points(timeline, track, device);
  const end = Math.min(timeline.x(track.outline.end_ns), LABELS + timeline.plot);
  let [x, value] = [Math.max(timeline.x(0), LABELS), initial];
  c.strokeStyle = c.fillStyle = colorOf(timeline.colors, index);
  if (found.length > DENSE) {
    // As rectangles: a path of thousands of corners takes longer to draw than all bars.
    const line = (a, b, low, high) => c.fillRect(a, toY(high) - 0.75, Math.max(b - a, 1.5), toY(low) - toY(high) + 1.5);
    for (const [at, low, high, last] of found) {
      line(x, LABELS + at, value, value);
      line(LABELS + at, LABELS + at + 1.5, Math.min(low, value), Math.max(high, value));
      [x, value] = [LABELS + at, last];
    }
    line(x, end, value, value);
    return;
  }
  c.lineWidth = 1.5;
  c.setLineDash(index ? [5, 3] : []);
  c.beginPath();
  c.moveTo(x, toY(value));
  for (const [at, low, high, last] of found) {
    c.lineTo(LABELS + at, toY(value));
    if (low < Math.min(value, last)) c.lineTo(LABELS + at, toY(low));
    if (high > Math.max(value, last)) c.lineTo(LABELS + at, toY(high));
    c.lineTo(LABELS + at, toY(last));
    value = last;
  }
  c.lineTo(end, toY(value));
  c.stroke();
  c.setLineDash([]);
  c.lineWidth = 1;
}

function paintPeak(c, timeline, {outline}, index, device, toY) {
  const [peak, ns] = outline.peaks[device] || [0, 0];
  if (!peak) return;
  const [x, y] = [timeline.x(ns), toY(peak)];
  c.fillStyle = colorOf(timeline.colors, index);
  c.beginPath();
  c.arc(x, y, 3.5, 0, 7);
  c.fill();
  const text = byteText(peak);
  c.font = SMALL;
  const width = c.measureText(text).width, below = y + 14 * index;
  const left = x + 8 + width > LABELS + timeline.plot ? x - 8 - width : x + 8;
  c.fillStyle = timeline.colors.row;
  c.globalAlpha = 0.85;
  c.fillRect(left - 2, below - 7, width + 4, 13);
  c.globalAlpha = 1;
  c.fillStyle = colorOf(timeline.colors, index);
  c.fillText(text, left, below);
}
