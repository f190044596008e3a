// The search: the best and the mean candidate over the evaluations, bounds, and what seeds and proposals gave.

import {context, element, isDark} from "./dom.js";
import {theme} from "./colors.js";
import {byteText, countText, ticks, timeText} from "./scales.js";

const LEFT = 84, RIGHT = 16, TOP = 12, BOTTOM = 34;

export class Curves {
  constructor() {
    this.canvas = element("canvas", {role: "img"});
    this.element = element("div", {class: "curves"}, this.canvas);
    new ResizeObserver(() => this.paint()).observe(this.element);
  }

  // points: [[phase, evaluations, best, mean or null]]; lines: [{label, value}]; unit: "ns" or "bytes".
  show(points, lines, unit) {
    [this.points, this.lines, this.unit] = [points, lines, unit];
    this.canvas.setAttribute("aria-label", points.length
      ? `Best candidate: ${this.text(points[0][2])} after ${points[0][1]} evaluations, ${this.text(points.at(-1)[2])} after ${points.at(-1)[1]}.`
      : "This method does not search.");
    this.paint();
  }

  text(value) {
    return value === null ? "nothing fits" : this.unit === "ns" ? timeText(value) : byteText(value);
  }

  paint() {
    if (!this.points?.length || !this.element.isConnected) return;
    const [width, height] = [Math.max(300, this.element.clientWidth), 280];
    const colors = theme(isDark()), c = context(this.canvas, width, height, colors.background);
    const values = this.points.flatMap((p) => [p[2], p[3]]).concat(this.lines.map((l) => l.value)).filter((v) => v !== null && Number.isFinite(v));
    // Means of a first, random generation can be many times the best: they are cut off.
    const best = Math.min(...values), worst = Math.min(Math.max(...values), 3 * Math.max(...this.points.map((p) => p[2] ?? 0)));
    const pad = 0.06 * (worst - best || best || 1);
    const [low, high] = [Math.max(0, best - pad), worst + pad];
    const last = this.points.at(-1)[1] || 1;
    const x = (n) => LEFT + (n / last) * (width - LEFT - RIGHT), y = (v) => TOP + (1 - (v - low) / (high - low)) * (height - TOP - BOTTOM);
    c.font = "11px Roboto, Arial, sans-serif";
    c.textBaseline = "middle";
    for (const value of ticks(low, high, 5)) {
      c.strokeStyle = colors.line;
      c.strokeRect(LEFT, Math.round(y(value)) + 0.5, width - LEFT - RIGHT, 0);
      c.fillStyle = colors.faint;
      c.textAlign = "right";
      c.fillText(this.text(value), LEFT - 8, y(value));
    }
    c.textAlign = "center";
    for (const value of ticks(0, last, Math.max(2, Math.floor(width / 140)))) c.fillText(countText(value), x(value), height - BOTTOM + 12);
    c.fillText("evaluations", (LEFT + width - RIGHT) / 2, height - 8);
    c.textAlign = "left";
    const labels = [];
    for (const line of this.lines) {
      if (line.value > high) continue;
      c.setLineDash([4, 4]);
      c.strokeStyle = colors.faint;
      c.beginPath();
      c.moveTo(LEFT, y(line.value));
      c.lineTo(width - RIGHT, y(line.value));
      c.stroke();
      c.setLineDash([]);
      let at = y(line.value) - 8;
      while (labels.some((other) => Math.abs(other - at) < 13)) at -= 13;
      labels.push(at);
      c.fillStyle = colors.faint;
      c.fillText(`${line.label}: ${this.text(line.value)}`, LEFT + 8, at);
    }
    c.save();
    c.beginPath();
    c.rect(LEFT, TOP - 2, width - LEFT - RIGHT + 2, height - TOP - BOTTOM + 4);
    c.clip();
    const curve = (column, color, stepped) => {
      c.strokeStyle = color;
      c.lineWidth = 2;
      c.beginPath();
      let before = null;
      for (const point of this.points) {
        if (point[column] === null) continue;
        if (stepped && before !== null) c.lineTo(x(point[1]), y(before));
        c.lineTo(x(point[1]), y(point[column]));
        before = point[column];
      }
      if (stepped && before !== null) c.lineTo(x(last), y(before));
      c.stroke();
      c.lineWidth = 1;
    };
    curve(3, colors.default, false);
    curve(2, colors.planned, true);
    c.restore();
  }
}
