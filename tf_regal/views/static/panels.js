// What stands beside and below the timeline: figures, the selected op, the peak's owners, the search, the measurement, tables.

import {Curves} from "./curves.js";
import {clear, element} from "./dom.js";
import {byteText, countText, percentText, timeText} from "./scales.js";
import {Table} from "./tables.js";

const MOST_NEIGHBOURS = 60;
const STATUS = {planned: "planned", default_kept: "default kept", skipped: "skipped", rolled_back: "rolled back", failed: "failed", saved: "saved"};

export function statusText(status) {
  return STATUS[status] || status;
}

export function chip(status) {
  return element("span", {class: `chip ${status}`}, statusText(status));
}

const peak = (figures) => Math.max(0, ...Object.values(figures.peak_bytes));

// The change of the objective that a plan predicts, as a share; null where there is no plan.
export function change(summary) {
  if (!summary.predicted) return null;
  const of = (figures) => (summary.objective === "runtime" ? figures.makespan_s : peak(figures));
  return of(summary.default) ? of(summary.predicted) / of(summary.default) - 1 : null;
}

export function measuredChange(summary) {
  const m = summary.measured;
  if (!m) return null;
  return summary.objective === "peak_memory" && m.planned_peak_bytes ? m.planned_peak_bytes / m.default_peak_bytes - 1 : m.ratio - 1;
}

function card(title, value, note) {
  return element("div", {class: "card"}, element("div", {class: "card-title"}, title), element("div", {class: "card-value"}, value),
    element("div", {class: "card-note"}, note));
}

export function cards(plan) {
  const {overview, summary} = plan;
  const {predicted, default: before} = overview.figures;
  const gap = overview.bounds.makespan_s ? percentText(predicted.makespan_s / overview.bounds.makespan_s - 1) : "–";
  const found = [
    card("Time per call, predicted", timeText(predicted.makespan_s * 1e9),
      `${percentText(predicted.makespan_s / before.makespan_s - 1)} against the default's ${timeText(before.makespan_s * 1e9)}`),
    card("Largest peak of a device", byteText(peak(predicted)), `${percentText(peak(predicted) / peak(before) - 1)} against the default's ${byteText(peak(before))}`),
    card("Moved between devices", byteText(predicted.transfer_bytes), `default: ${byteText(before.transfer_bytes)}`),
    card("Above the lower bound", gap, `no plan can take less than ${timeText(overview.bounds.makespan_s * 1e9)}`),
  ];
  const m = summary.measured;
  if (m) {
    found.splice(1, 0, card("Time per call, measured", timeText(m.planned_s * 1e9),
      `${percentText(m.ratio - 1)} against the default's ${timeText(m.default_s * 1e9)}; better in ${m.better} of ${m.pairs} pairs`));
  }
  return element("div", {class: "cards"}, ...found);
}

// What is known of one op. goTo(op): selects another.
export function opPanel(plan, op, goTo) {
  const {overview, graph, names} = plan;
  if (!graph || !names) return element("div", {class: "side"}, "Loading names …");
  const facts = [["Type", overview.types[graph.arrays.type[op]]]];
  const outputs = names.outputs[op];
  if (outputs) facts.push(["Gives", outputs]);
  facts.push(["Output bytes", byteText(graph.outputBytes(op))]);
  if (graph.arrays.persistent[op]) facts.push(["Held all the time", byteText(graph.arrays.persistent[op])]);
  const parts = [];
  for (const schedule of plan.schedules) {
    const columns = plan.columns[schedule];
    if (!columns || (schedule === "measured" && !(columns.op_end[op] > 0))) continue;
    const [start, end, idle] = [columns.op_start[op], columns.op_end[op], columns.idle[op]];
    const rows = [["Device", plan.devices[columns.device[op]]], ["Runs", `${timeText(end - start)}, from ${timeText(start)} to ${timeText(end)}`]];
    if (schedule !== "measured" && overview.has_details) {
      rows.push(["Inputs were there", timeText(columns.ready[op])]);
      const cause = columns.cause[op], reason = overview.reasons[columns.reason[op]];
      const link = cause >= 0 ? element("button", {type: "button", class: "link", onclick: () => goTo(cause)}, names.names[cause]) : "";
      const text = {
        start: "nothing: it could begin at once", input: "its input, made by ", transfer: "the transfer of what comes from ", control: "a control edge from ",
        lane: "a free lane of its device, taken by ",
      }[reason];
      rows.push(["Waited for", element("span", {}, cause < 0 && reason === "lane" ? "a free lane of its device" : text, link)]);
      if (idle > 0) rows.push(["Its lane stood idle", timeText(idle)]);
    }
    parts.push(element("h4", {}, {planned: "As planned", default: "By default", measured: "Measured"}[schedule]), facts_(rows));
  }
  const neighbours = (title, list) => {
    const shown = list.slice(0, MOST_NEIGHBOURS);
    const kinds = {data: "", control: " (control edge)", added: " (edge of the plan)"};
    return [element("h4", {}, `${title} (${list.length})`), element("ul", {class: "neighbours"}, ...shown.map((n) =>
      element("li", {}, element("button", {type: "button", class: "link", onclick: () => goTo(n.op)}, names.names[n.op]),
        element("span", {class: "faint"}, n.kind === "data" ? ` ${byteText(n.bytes)}` : kinds[n.kind])))),
    list.length > shown.length ? element("div", {class: "faint"}, `and ${list.length - shown.length} more`) : null];
  };
  const edges = graph.hasEdges
    ? [...neighbours("Waits for", graph.predecessors(op)), ...neighbours("Is waited for by", graph.successors(op))]
    : [element("p", {class: "faint"}, "This plan was made by a version that did not keep edges: plan again to see them.")];
  return element("div", {class: "side"}, element("h3", {class: "op-name"}, names.names[op]), facts_(facts), ...parts, ...edges);
}

function facts_(rows) {
  return element("dl", {}, ...rows.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

// The buffers that are alive at the peaks.
export function peakPanel(plan, goTo) {
  const box = element("div", {});
  const {overview} = plan;
  for (const [schedule, title] of [["planned", "As planned"], ["default", "By default"]]) {
    const outline = overview.schedules[schedule];
    if (!outline) continue;
    outline.held.forEach((rows, q) => {
      const [bytes, at] = outline.peaks[q];
      const persistent = outline.persistent[q];
      box.append(element("h3", {}, `${title}: ${plan.devices[q]}`), element("p", {}, bytes
        ? `Peak of ${byteText(bytes)} at ${timeText(at)}; ${byteText(persistent)} of it are variables, constants and arguments, which live all the time.`
        : `Nothing but ${byteText(persistent)} of variables, constants and arguments.`));
      if (!rows.length) return;
      const name = (op) => (plan.names ? plan.names.names[op] : `op ${op}`);
      const table = new Table(`Buffers alive at the peak of ${plan.devices[q]}, ${title}`, [
        {title: "Made by", value: (r) => name(r[0])}, {title: "Bytes", value: (r) => r[1], text: (r) => byteText(r[1]), number: true},
        {title: "Share", value: (r) => r[1] / bytes, text: (r) => `${((100 * r[1]) / bytes).toFixed(1)} %`, number: true},
        {title: "What", value: (r) => overview.buffers[r[5]]}, {title: "From", value: (r) => r[2], text: (r) => timeText(r[2]), number: true},
        {title: "Until", value: (r) => (r[3] < 0 ? Infinity : r[3]), text: (r) => (r[3] < 0 ? "the end" : timeText(r[3])), number: true},
        {title: "Kept by", value: (r) => (r[4] < 0 ? "it is a result" : name(r[4]))},
      ], {pick: (r) => goTo(r[0]), sort: 1});
      table.show(rows);
      box.append(table.element);
    });
  }
  if (!overview.has_details) box.append(element("p", {class: "faint"}, "This plan was made by a version that did not keep what is alive at the peak: plan again to see it."));
  return box;
}

export function searchPanel(plan) {
  const {overview} = plan, {search, trace} = overview;
  const runtime = overview.objective === "runtime";
  const text = runtime ? timeText : byteText;
  const head = element("p", {}, `${search.method}, ${countText(search.evaluations)} evaluations in ${search.seconds.toFixed(2)} s, seed ${search.seed}, `
    + `policy: ${search.policy || "none (uniform)"}.`);
  const box = element("div", {}, head);
  if (!trace?.points?.length) {
    box.append(element("p", {class: "faint"}, "The method makes one plan and does not search, or the plan is of a version that did not keep how the search went."));
  } else {
    const curves = new Curves();
    const lines = [
      {label: "default plan", value: runtime ? overview.figures.default.makespan_s * 1e9 : peak(overview.figures.default)},
      {label: "lower bound", value: runtime ? overview.bounds.makespan_s * 1e9 : overview.bounds.peak_bytes},
    ];
    box.append(element("div", {class: "legend"}, element("span", {class: "key planned"}), "best so far ", element("span", {class: "key default"}), "mean of a generation"), curves.element);
    requestAnimationFrame(() => curves.show(trace.points, lines, runtime ? "ns" : "bytes"));
  }
  if (trace?.samples?.proposed) {
    const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
    const [proposed, uniform] = [middle(trace.samples.proposed), middle(trace.samples.uniform)];
    box.append(element("h3", {}, "The policy's proposal against uniform"), element("p", {},
      `The middle of ${trace.samples.proposed.length} candidates each: ${text(proposed)} as proposed, ${text(uniform)} uniform (${percentText(proposed / uniform - 1)}); `
      + `the best of them ${text(Math.min(...trace.samples.proposed))} and ${text(Math.min(...trace.samples.uniform))}.`));
  }
  if (trace?.seeds?.length) {
    const table = new Table("What the search began with", [
      {title: "Seed", value: (r) => r[0]}, {title: "Time per call", value: (r) => r[1], text: (r) => timeText(r[1]), number: true},
      {title: "Largest peak", value: (r) => r[2], text: (r) => byteText(r[2]), number: true}, {title: "Fits", value: (r) => (r[3] ? "yes" : "no")},
    ], {sort: runtime ? 1 : 2, descending: false});
    table.show(trace.seeds);
    box.append(element("h3", {}, "Seeds"), table.element);
  }
  return box;
}

// The measured step against the predicted one, op by op.
export function measuredPanel(plan, goTo) {
  const found = plan.overview.measured;
  if (!found) {
    return element("p", {class: "faint"}, "Nothing was measured for this plan. A program that runs with tf_regal.enable(logdir=…) records one call of each planned "
      + "function whose devices are CPUs; ops on GPUs and TPUs are not recorded.");
  }
  const name = (op) => (plan.names ? plan.names.names[op] : `op ${op}`);
  const table = new Table("Predicted and measured durations", [
    {title: "Op", value: (r) => name(r[0])}, {title: "Predicted", value: (r) => r[1], text: (r) => timeText(r[1]), number: true},
    {title: "Measured", value: (r) => r[2], text: (r) => timeText(r[2]), number: true},
    {title: "Error", value: (r) => (r[2] ? r[1] / r[2] - 1 : null), text: (r) => (r[2] ? percentText(r[1] / r[2] - 1) : "–"), number: true},
    {title: "Difference", value: (r) => Math.abs(r[1] - r[2]), text: (r) => timeText(Math.abs(r[1] - r[2])), number: true},
  ], {pick: (r) => goTo(r[0]), sort: 4});
  table.show(found.ops);
  return element("div", {}, element("p", {}, `One call took ${timeText(found.step_ns)} where ${timeText(found.predicted_ns)} were predicted `
    + `(${percentText(found.predicted_ns / found.step_ns - 1)}); ${countText(found.ops.length)} of ${countText(plan.overview.ops)} ops were seen. `
    + `The median op is off by ${percentText(found.median_error).replace("+", "")}; the median of what time is spent on by ${percentText(found.weighted_error)}.`), table.element);
}

export function opsPanel(plan, goTo) {
  const {overview, graph, names} = plan, columns = plan.columns.planned, before = plan.columns.default;
  if (!graph || !names || !columns) return element("p", {}, "Loading …");
  const length = (c, op) => c.op_end[op] - c.op_start[op];
  const list = [
    {title: "Op", value: (op) => names.names[op]}, {title: "Type", value: (op) => overview.types[graph.arrays.type[op]]},
    {title: "Device", value: (op) => plan.devices[columns.device[op]]},
    {title: "Starts", value: (op) => columns.op_start[op], text: (op) => timeText(columns.op_start[op]), number: true},
    {title: "Takes", value: (op) => length(columns, op), text: (op) => timeText(length(columns, op)), number: true},
    {title: "Output", value: (op) => graph.outputBytes(op), text: (op) => byteText(graph.outputBytes(op)), number: true},
    {title: "Lane idle before", value: (op) => columns.idle[op], text: (op) => (columns.idle[op] > 0 ? timeText(columns.idle[op]) : ""), number: true},
    {title: "Waited for", value: (op) => overview.reasons[columns.reason[op]]},
  ];
  if (before) {
    list.push({title: "Default device", value: (op) => plan.devices[before.device[op]]},
      {title: "Default start", value: (op) => before.op_start[op], text: (op) => timeText(before.op_start[op]), number: true});
  }
  const table = new Table("All ops of the plan", list, {pick: goTo, sort: 3, descending: false});
  table.show(Array.from({length: overview.ops}, (_, op) => op));
  return table.element;
}

export function notesPanel(plan) {
  const {overview, summary} = plan;
  const rows = [
    ["Function", summary.function], ["Status", statusText(summary.status)], ["Why", summary.reason || "–"], ["Objective", overview.objective],
    ["Topology", overview.topology], ["Devices", overview.devices.map((d, q) => `${plan.devices[q]} (${d.model})`).join(", ")],
    ["Ops", countText(overview.ops)], ["Control edges", `${countText(overview.control_edges)} (order: ${overview.order})`],
    ["Fingerprint", overview.fingerprint], ["File", summary.file || "–"],
  ];
  return element("div", {}, facts_(rows), overview.notes.length ? element("h3", {}, "What was assumed") : null,
    element("ul", {}, ...overview.notes.map((note) => element("li", {}, note))));
}
