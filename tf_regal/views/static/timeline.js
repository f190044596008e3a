// The timeline: rows of bars per device lane and link for one or several schedules on one time axis, and memory below.

import {above, coarse, draw, hit} from "./bars.js";
import {categoryColor, costColor, textIndex, theme} from "./colors.js";
import {clear, context, element, fitted, FONT, isDark, LABELS, SMALL, TITLE} from "./dom.js";
import {MEMORY_ROW, paintMemory} from "./memory.js";
import {moved, ticks, tickText, timeText, zoomed} from "./scales.js";
import {tipLines} from "./side.js";
import {barOf, rowOf} from "./waits.js";

const RIGHT = 12, AXIS = 26, ROW = 20, THIN_ROW = 12, LINK = 12, GAP = 4;
const MANY_ROWS = 24;
const MOST_LINKS = 120; // rows of links of a track: a canvas has an end
const MOST_LINES = 2000; // to neighbours
const COARSE = 2048;
const BINS = 1000; // of what the overview holds (views/chunks.py)

export class Timeline {
  // on: {select(track index, bar or −1), next(step): to the next match}. What is selected is set by the owner: null, or {plan, op, schedule, transfer: its
  // bar or −1, before: ops that it waits for, after: ops that wait for it}.
  constructor(on) {
    this.on = on;
    this.tracks = [];
    this.view = {from: 0, to: 1};
    this.colorBy = "type";
    this.found = null;
    this.reference = null; // the plan whose colours count
    this.selected = null;
    [this.width, this.plot] = [320, 320 - LABELS - RIGHT];
    this.canvas = element("canvas", {tabindex: 0, role: "application", class: "timeline-canvas",
      "aria-label": "Timeline. Arrow keys move, plus and minus zoom, 0 shows all, n and p go through what was found, comma and full stop through a row's bars, Escape selects nothing."});
    this.tip = element("div", {class: "tip", role: "tooltip", hidden: true});
    this.element = element("div", {class: "timeline"}, this.canvas, this.tip);
    this.listen();
  }

  // tracks: [{title, plan, schedule, outline, columns or null}] as of app.js.
  show(tracks) {
    const end = Math.max(1, ...tracks.map((track) => track.outline.end_ns));
    if (end !== this.end) {
      const isWhole = !this.end || (this.view.from <= 0 && this.view.to >= this.end);
      this.view = isWhole ? {from: 0, to: end} : moved(this.view, 0, end);
    }
    this.end = end;
    this.longest = Math.max(1, ...tracks.map((track) => track.plan.longest || 1));
    this.tracks = tracks;
    this.layOut();
    this.redraw();
  }

  layOut() {
    let y = AXIS;
    this.rows = [];
    this.rowOf = []; // by track and number
    this.titles = [];
    for (const [index, track] of this.tracks.entries()) {
      this.titles.push({y, track});
      y += TITLE;
      const thin = track.outline.rows.length > MANY_ROWS;
      let links = 0;
      this.rowOf[index] = [];
      track.outline.rows.forEach((row, number) => {
        if (row.kind === "link" && ++links > MOST_LINKS) return;
        const height = row.kind === "link" || thin ? (row.kind === "link" ? LINK : THIN_ROW) : ROW;
        this.rowOf[index][number] = {y, height, track: index, number, row};
        this.rows.push(this.rowOf[index][number]);
        y += height + (row.kind === "link" ? 2 : GAP);
      });
      track.linksLeftOut = Math.max(0, links - MOST_LINKS);
      y += 6;
    }
    this.charts = [];
    const devices = this.tracks.map((track) => track.plan.overview.devices).reduce((most, other) => (other.length > most.length ? other : most), []);
    if (devices.length) {
      this.memoryTitle = y;
      y += TITLE;
    }
    devices.forEach((device, q) => {
      this.charts.push({y, height: MEMORY_ROW, device: q});
      y += MEMORY_ROW + 16;
    });
    this.height = y + 4;
  }

  // Asking the page for its layout is slow: once per picture.
  measure() {
    this.width = Math.max(320, this.element.clientWidth);
    this.plot = this.width - LABELS - RIGHT;
  }

  redraw() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.paint();
    });
  }

  paint() {
    if (!this.element.isConnected) return;
    if (!this.tracks.length) {
      this.measure();
      context(this.canvas, this.width, AXIS, theme(isDark()).background);
      this.canvas.dataset.tracks = "";
      return;
    }
    const began = performance.now();
    const dark = isDark();
    this.measure();
    this.colors = theme(dark);
    this.dark = dark;
    const c = context(this.canvas, this.width, this.height, this.colors.background);
    this.paintAxis(c);
    for (const {y, track} of this.titles) this.paintTitle(c, y, track);
    for (const row of this.rows) this.paintRow(c, row);
    this.paintNeighbours(c);
    paintMemory(c, this);
    this.paintTime = performance.now() - began;
    this.canvas.dataset.paintMs = this.paintTime.toFixed(2);
    // For those who test the page: what is in the picture cannot be read from it.
    this.canvas.dataset.view = `${this.view.from} ${this.view.to}`;
    this.canvas.dataset.tracks = this.tracks.map((track) => `${track.title}${track.columns ? "" : " (binned)"}`).join("|");
  }

  x(ns) {
    return LABELS + ((ns - this.view.from) / (this.view.to - this.view.from)) * this.plot;
  }

  time(x) {
    return this.view.from + ((x - LABELS) / this.plot) * (this.view.to - this.view.from);
  }

  paintAxis(c) {
    const at = ticks(this.view.from, this.view.to, Math.max(2, Math.floor(this.plot / 90)));
    const step = at.length > 1 ? at[1] - at[0] : this.view.to - this.view.from;
    c.font = SMALL;
    c.textBaseline = "middle";
    c.textAlign = "center";
    for (const ns of at) {
      const x = Math.round(this.x(ns)) + 0.5;
      c.strokeStyle = this.colors.line;
      c.beginPath();
      c.moveTo(x, AXIS - 6);
      c.lineTo(x, this.height);
      c.stroke();
      c.fillStyle = this.colors.faint;
      const text = tickText(ns, step), half = c.measureText(text).width / 2;
      c.fillText(text, Math.min(Math.max(x, LABELS + half), this.width - half - 1), AXIS / 2 - 2);
    }
    c.textAlign = "left";
  }

  paintTitle(c, y, track) {
    c.fillStyle = this.colors.background;
    c.fillRect(0, y + 2, this.width, TITLE - 4);
    c.fillStyle = this.colors.text;
    c.font = `600 ${FONT}`;
    c.fillText(fitted(c, `${track.title}, ${timeText(track.outline.end_ns)}${track.linksLeftOut ? ` (${track.linksLeftOut} more links: see Transfers)` : ""}`, this.width - 16), 8, y + TITLE / 2);
  }

  paintRow(c, {y, height, track, number, row}) {
    const {plan, outline, columns} = this.tracks[track];
    c.fillStyle = this.colors.row;
    c.fillRect(LABELS, y, this.plot, height);
    const first = number === 0 || row.kind === "link" || outline.rows[number - 1].device !== row.device;
    if (first) {
      const names = plan.devices;
      const label = row.kind === "link" ? `${names[row.source]} → ${names[row.destination]}` : names[row.device];
      c.fillStyle = row.kind === "link" ? this.colors.faint : this.colors.text;
      c.font = row.kind === "link" ? SMALL : FONT;
      c.fillText(fitted(c, label, LABELS - 20), 14, y + height / 2 + 0.5);
    }
    const isLink = row.kind === "link";
    if (!columns) {
      const bin = outline.end_ns / BINS;
      for (const [from, to, op] of outline.bins[number]) {
        const a = Math.max(this.x(from * bin), LABELS), b = Math.min(this.x((to + 1) * bin), LABELS + this.plot);
        if (b <= a) continue;
        c.fillStyle = isLink ? this.colors.transfer : this.colorOf(track, op, row, 0);
        c.fillRect(a, y, b - a, height);
      }
      return;
    }
    const [lo, hi] = [columns.row_ptr[number], columns.row_ptr[number + 1]];
    const bars = this.barsToDraw(outline, columns, number, lo, hi);
    // Narrow neighbours of one colour are filled as one: what is slow is the number of rectangles.
    let last = null, from = 0, to = -1;
    const fill = () => {
      if (to > from) c.fillRect(LABELS + from, y, to - from, height);
      to = -1;
    };
    c.font = SMALL;
    const dim = this.found && this.found.set;
    draw(bars.start, bars.end, bars.lo, bars.hi, this.view, this.plot, (x, width, at) => {
      const bar = bars.bar ? bars.bar[at] : at;
      const op = columns.op[bar];
      let color = isLink ? this.colors.transfer : this.colorOf(track, op, row, columns.end[bar] - columns.start[bar]);
      if (dim && !(this.found.plan === plan && dim.has(op))) color = this.colors.line;
      if (color === last && width <= 3 && to >= 0 && x - to < 0.6) {
        to = x + width;
        return;
      }
      fill();
      if (color !== last) c.fillStyle = last = color;
      [from, to] = [x, x + width - (width > 3 ? 0.5 : 0)];
      if (width > 40 && height >= 16 && plan.names) {
        fill();
        c.fillStyle = this.dark ? "#111" : "#000";
        last = null;
        c.fillText(fitted(c, plan.names.names[op].split("/").pop(), width - 6), LABELS + x + 3, y + height / 2 + 0.5);
      }
    });
    fill();
    const bar = this.selectedBar(track);
    if (bar >= lo && bar < hi) this.paintSelection(c, columns, bar, y, height);
  }

  // A row's bars; where they are many and a pixel is wide, those of a coarse picture that is made once.
  barsToDraw(outline, columns, number, lo, hi) {
    const all = {start: columns.start, end: columns.end, lo, hi, bar: null};
    if (hi - lo < 2 * COARSE || (this.view.to - this.view.from) / this.plot < outline.end_ns / COARSE) return all;
    columns.coarse ??= [];
    columns.coarse[number] ??= coarse(columns.start, columns.end, lo, hi, outline.end_ns, COARSE);
    const found = columns.coarse[number];
    return {...found, lo: 0, hi: found.bar.length};
  }

  // The bar of what is selected on a track; −1: none.
  selectedBar(track) {
    const {plan, schedule, columns} = this.tracks[track], {selected} = this;
    if (!selected || !columns || selected.plan !== plan) return -1;
    if (selected.transfer >= 0) return selected.schedule === schedule ? selected.transfer : -1;
    return barOf(columns, selected.op);
  }

  paintSelection(c, columns, bar, y, height) {
    if (columns.end[bar] < this.view.from || columns.start[bar] > this.view.to) return;
    const a = Math.max(this.x(columns.start[bar]), LABELS), b = Math.min(this.x(columns.end[bar]), LABELS + this.plot);
    c.strokeStyle = this.colors.text;
    c.lineWidth = 2;
    c.strokeRect(a - 1, y - 1, Math.max(b - a, 2) + 2, height + 2);
    c.lineWidth = 1;
  }

  // What the selection waits for and what waits for it, as lines from the end of one to the start of the other, in every track that shows it.
  paintNeighbours(c) {
    if (!this.selected) return;
    c.save();
    c.beginPath();
    c.rect(LABELS, AXIS, this.plot, this.height);
    c.clip();
    c.lineWidth = 1.5;
    this.tracks.forEach(({columns}, track) => {
      const bar = this.selectedBar(track);
      if (bar < 0) return;
      const line = (from, to, color) => {
        const [ya, yb] = [this.centre(track, from), this.centre(track, to)];
        if (ya === null || yb === null) return;
        const [xa, xb] = [this.x(columns.end[from]), this.x(columns.start[to])];
        c.strokeStyle = color;
        c.beginPath();
        c.moveTo(xa, ya);
        c.bezierCurveTo(xa + 24, ya, xb - 24, yb, xb, yb);
        c.stroke();
      };
      for (const other of this.selected.before.slice(0, MOST_LINES)) line(barOf(columns, other), bar, this.colors.accent);
      for (const other of this.selected.after.slice(0, MOST_LINES)) line(bar, barOf(columns, other), this.colors.transfer);
    });
    c.restore();
  }

  // The y of the middle of a bar; null where there is none.
  centre(track, bar) {
    if (bar < 0) return null;
    const number = rowOf(this.tracks[track].columns, bar);
    const row = this.rowOf[track][number];
    return row ? row.y + row.height / 2 : null;
  }

  colorOf(track, op, row, duration) {
    const {plan} = this.tracks[track];
    if (this.colorBy === "device") return categoryColor(row.device, this.dark);
    if (this.colorBy === "cost") return costColor(Math.log1p(duration) / Math.log1p(this.longest), this.dark);
    if (this.colorBy === "layer" && plan.layers) return categoryColor(textIndex(plan.layers.labels[plan.layers.of[op]]), this.dark);
    return plan.graph ? categoryColor(plan.typeColors(this.reference)[plan.graph.arrays.type[op]], this.dark) : categoryColor(0, this.dark);
  }

  // The bar under a point: {track, bar, row}, or null.
  at(x, y) {
    if (x < LABELS) return null;
    const row = this.rows.find((r) => y >= r.y - 1 && y <= r.y + r.height + 1);
    if (!row) return null;
    const {columns} = this.tracks[row.track];
    if (!columns) return null;
    const reach = (3 / this.plot) * (this.view.to - this.view.from);
    const bar = hit(columns.start, columns.end, columns.row_ptr[row.number], columns.row_ptr[row.number + 1], this.time(x), reach);
    return bar < 0 ? null : {track: row.track, bar, row};
  }

  zoom(factor, at = (this.view.from + this.view.to) / 2) {
    this.view = zoomed(this.view, factor, at, this.end);
    this.redraw();
  }

  pan(share) {
    this.view = moved(this.view, share * (this.view.to - this.view.from), this.end);
    this.redraw();
  }

  fit() {
    this.view = {from: 0, to: this.end};
    this.redraw();
  }

  // Brings a bar of a track into view, with room around it.
  reveal(track, bar) {
    const {columns} = this.tracks[track];
    const [a, b] = [columns.start[bar], columns.end[bar]];
    const span = this.view.to - this.view.from;
    if (a < this.view.from || b > this.view.to || (b - a) / span < 0.002) {
      const wanted = Math.min(span, Math.max((b - a) * 20, this.end / 5000));
      this.view = moved({from: (a + b - wanted) / 2, to: (a + b + wanted) / 2}, 0, this.end);
    }
    this.redraw();
  }

  // Selects the bar `step` further on the row of the selected one; where none is, the first one in view.
  step(step) {
    const go = (track, bar) => {
      this.on.select(track, bar);
      this.reveal(track, bar);
    };
    const isOther = (track) => this.tracks[track].schedule !== this.selected?.schedule;
    for (const track of [...this.tracks.keys()].sort((a, b) => isOther(a) - isOther(b))) {
      const bar = this.selectedBar(track), {columns} = this.tracks[track];
      if (bar < 0) continue;
      const number = rowOf(columns, bar), [lo, hi] = [columns.row_ptr[number], columns.row_ptr[number + 1]];
      go(track, Math.min(Math.max(bar + step, lo), hi - 1));
      return;
    }
    for (const {track, number} of this.rows) {
      const {columns} = this.tracks[track];
      if (!columns) continue;
      const [lo, hi] = [columns.row_ptr[number], columns.row_ptr[number + 1]];
      const bar = above(columns.end, lo, hi, this.view.from);
      if (bar < hi && columns.start[bar] <= this.view.to) {
        go(track, bar);
        return;
      }
    }
  }

  listen() {
    const {canvas} = this;
    let grip = null;
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      const [x] = point(event);
      // Sideways on a trackpad, or with shift: pan. With ctrl (a pinch) or alt: zoom. Else the page scrolls.
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      if (event.ctrlKey || event.altKey || event.metaKey) this.zoom(Math.exp(event.deltaY * 0.004), this.time(x));
      else if (sideways) this.pan((event.deltaX || event.deltaY) / this.plot);
      else return;
      event.preventDefault();
    }, {passive: false});
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      grip = {x: event.clientX, view: this.view, moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = point(event);
      if (!event.buttons) grip = null;
      if (grip) {
        const delta = event.clientX - grip.x;
        if (Math.abs(delta) > 3) grip.moved = true;
        if (grip.moved) {
          this.view = moved(grip.view, (-delta / this.plot) * (grip.view.to - grip.view.from), this.end);
          this.redraw();
        }
        return;
      }
      const found = this.at(x, y);
      canvas.style.cursor = found ? "pointer" : "grab";
      this.showTip(found, x, y);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (grip && !grip.moved) {
        const found = this.at(...point(event));
        this.on.select(found ? found.track : 0, found ? found.bar : -1);
      }
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => (grip = null));
    canvas.addEventListener("pointerleave", () => this.showTip(null));
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.time(point(event)[0])));
    canvas.addEventListener("keydown", (event) => {
      const action = {
        ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), "-": () => this.zoom(1 / 0.7),
        0: () => this.fit(), n: () => this.on.next(1), p: () => this.on.next(-1), ",": () => this.step(-1), ".": () => this.step(1),
        Escape: () => this.on.select(0, -1),
      }[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
    new ResizeObserver(() => this.redraw()).observe(this.element);
  }

  showTip(found, x, y) {
    if (!found) {
      this.tip.hidden = true;
      return;
    }
    const {plan, schedule} = this.tracks[found.track];
    const [name, ...lines] = tipLines(plan, schedule, found.bar);
    clear(this.tip, element("strong", {}, name), ...lines.map((line) => element("div", {}, line)));
    this.tip.hidden = false;
    const left = Math.min(x + 14, this.width - this.tip.offsetWidth - 8);
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${y + 16}px)`;
  }
}
