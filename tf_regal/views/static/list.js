// The list of plans and skipped functions, and what it says in a line.

import {element} from "./dom.js";
import {byteText, percentText, timeText} from "./scales.js";
import {Table} from "./tables.js";

const STATUS = {planned: "planned", default_kept: "default kept", skipped: "skipped", rolled_back: "rolled back", failed: "failed", saved: "saved"};

export function statusText(status) {
  return STATUS[status] || status;
}

export function chip(status) {
  return element("span", {class: `chip ${status}`}, statusText(status));
}

export const peakOf = (figures) => Math.max(0, ...Object.values(figures.peak_bytes));

function objectiveOf(summary, figures) {
  return summary.objective === "runtime" ? figures.makespan_s : peakOf(figures);
}

// The change of the objective that a plan predicts, as a share; null where there is no plan.
function change(summary) {
  if (!summary.predicted) return null;
  const before = objectiveOf(summary, summary.default);
  return before ? objectiveOf(summary, summary.predicted) / before - 1 : null;
}

const isMemoryMeasured = (summary) => summary.objective === "peak_memory" && summary.measured.planned_peak_bytes;

function measuredChange(summary) {
  const m = summary.measured;
  if (!m) return null;
  return isMemoryMeasured(summary) ? m.planned_peak_bytes / m.default_peak_bytes - 1 : m.ratio - 1;
}

function figureText(summary, figures) {
  if (!figures) return "–";
  const value = objectiveOf(summary, figures);
  return summary.objective === "runtime" ? timeText(value * 1e9) : byteText(value);
}

function measuredText(summary) {
  const m = summary.measured;
  if (!m) return "–";
  const [planned, before] = isMemoryMeasured(summary) ? [byteText(m.planned_peak_bytes), byteText(m.default_peak_bytes)] : [timeText(m.planned_s * 1e9), timeText(m.default_s * 1e9)];
  return `${planned} against ${before} (${percentText(measuredChange(summary))})`;
}

const shortName = (summary) => summary.function.replace(/^__inference_/, "").replace(/_\d+$/, "");

// pick(summary), isCurrent(summary), state: as of Table.
export function planTable(summaries, {pick, isCurrent, state}) {
  const table = new Table("Plans and skipped functions", [
    {title: "Function", value: shortName}, {title: "Status", value: (s) => s.status, text: (s) => chip(s.status)},
    {title: "Objective", value: (s) => s.objective || "", text: (s) => ({runtime: "time", peak_memory: "memory"})[s.objective] || "–"},
    {title: "Default", value: (s) => s.default && objectiveOf(s, s.default), text: (s) => figureText(s, s.default), number: true},
    {title: "Planned, predicted", value: change, text: (s) => (s.predicted ? `${figureText(s, s.predicted)} (${percentText(change(s))})` : "–"), number: true},
    {title: "Measured", value: measuredChange, text: measuredText, number: true},
    {title: "Topology", value: (s) => s.topology || "", text: (s) => s.topology || "–"}, {title: "Reason", value: (s) => s.reason || ""},
  ], {pick, isCurrent, state});
  table.show(summaries);
  return table;
}
