// The views of a plan but for the timeline: figures, memory, transfers, the search, the measurement, ops. Of their argument `on`: goTo(op) and
// goToTransfer(schedule, bar) select in the timeline, state(caption) keeps how a table is sorted.

import {Curves} from "./curves.js";
import {element} from "./dom.js";
import {byteText, countText, percentText, timeText} from "./scales.js";
import {peakOf, statusText} from "./list.js";
import {facts, nameOf, SCHEDULES} from "./side.js";
import {Table} from "./tables.js";
import {takers, transfersOf} from "./waits.js";

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
    card("Largest peak of a device", byteText(peakOf(predicted)), `${percentText(peakOf(predicted) / peakOf(before) - 1)} against the default's ${byteText(peakOf(before))}`),
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

const BOTH = ["planned", "default"].map((schedule) => [schedule, SCHEDULES[schedule]]);

// Peaks per device, the buffers that are alive at them, and memory over time.
export function memoryPanel(plan, on) {
  const {overview} = plan, schedules = BOTH.filter(([schedule]) => overview.schedules[schedule]);
  const peaks = new Table("Peaks per device", [
    {title: "Device", value: (r) => plan.devices[r.q]}, {title: "Schedule", value: (r) => r.title},
    {title: "Peak", value: (r) => r.bytes, text: (r) => byteText(r.bytes), number: true}, {title: "At", value: (r) => r.at, text: (r) => timeText(r.at), number: true},
    {title: "Held all the time", value: (r) => r.persistent, text: (r) => byteText(r.persistent), number: true},
    {title: "Capacity", value: (r) => r.memory, text: (r) => (r.memory === null ? "no limit" : byteText(r.memory)), number: true},
    {title: "Of capacity", value: (r) => r.memory && r.bytes / r.memory, text: (r) => (r.memory ? `${((100 * r.bytes) / r.memory).toFixed(1)} %` : "–"), number: true},
  ], {state: on.state("peaks")});
  peaks.show(overview.devices.flatMap((device, q) => schedules.map(([schedule, title]) => {
    const outline = overview.schedules[schedule], [bytes, at] = outline.peaks[q];
    return {q, title, bytes, at, persistent: outline.persistent[q], memory: device.memory};
  })));
  const box = element("div", {}, element("h3", {}, "Peaks"), peaks.element);
  for (const [schedule, title] of schedules) {
    const outline = overview.schedules[schedule];
    outline.held.forEach((rows, q) => box.append(...heldAt(plan, outline, rows, q, title, on)));
  }
  if (!overview.has_details) box.append(element("p", {class: "faint"}, "This plan was made by a version that did not keep what is alive at the peak: plan again to see it."));
  box.append(element("h3", {}, "Memory over time"), overTime(plan, schedules, on));
  return box;
}

// The buffers that are alive at the peak of a device.
function heldAt(plan, outline, rows, q, title, on) {
  const [bytes, at] = outline.peaks[q], persistent = outline.persistent[q];
  const parts = [element("h3", {}, `${title}: ${plan.devices[q]}`), element("p", {}, bytes
    ? `Peak of ${byteText(bytes)} at ${timeText(at)}; ${byteText(persistent)} of it are variables, constants and arguments, which live all the time.`
    : `Nothing but ${byteText(persistent)} of variables, constants and arguments.`)];
  if (!rows.length) return parts;
  const table = new Table(`Buffers alive at the peak of ${plan.devices[q]}, ${title}`, [
    {title: "Made by", value: (r) => nameOf(plan, r[0])}, {title: "Bytes", value: (r) => r[1], text: (r) => byteText(r[1]), number: true},
    {title: "Share", value: (r) => r[1] / bytes, text: (r) => `${((100 * r[1]) / bytes).toFixed(1)} %`, number: true},
    {title: "What", value: (r) => plan.overview.buffers[r[5]]}, {title: "From", value: (r) => r[2], text: (r) => timeText(r[2]), number: true},
    {title: "Until", value: (r) => (r[3] < 0 ? Infinity : r[3]), text: (r) => (r[3] < 0 ? "the end" : timeText(r[3])), number: true},
    {title: "Kept by", value: (r) => (r[4] < 0 ? "it is a result" : nameOf(plan, r[4]))},
  ], {pick: (r) => on.goTo(r[0]), sort: 1, state: on.state(`held ${title} ${q}`)});
  table.show(rows);
  parts.push(table.element);
  const rest = bytes - persistent - rows.reduce((sum, r) => sum + r[1], 0);
  if (rest > 0) parts.push(element("p", {class: "faint"}, `These are the ${countText(rows.length)} largest buffers; smaller ones hold another ${byteText(rest)}.`));
  return parts;
}

// One curve of memory as a table: which one is chosen.
function overTime(plan, schedules, on) {
  const choice = element("select", {"aria-label": "Schedule and device"}, ...schedules.flatMap(([schedule, title]) =>
    plan.devices.map((name, q) => element("option", {value: `${schedule} ${q}`}, `${title}: ${name}`))));
  const state = on.state("memory over time");
  const table = new Table("Memory in use after each change", [
    {title: "Time", value: (r) => r.ns, text: (r) => timeText(r.ns, 6)}, {title: "In use", value: (r) => r.bytes, text: (r) => byteText(r.bytes), number: true},
    {title: "Change", value: (r) => r.change, text: (r) => `${r.change < 0 ? "−" : "+"}${byteText(Math.abs(r.change))}`, number: true},
  ], {state});
  const show = () => {
    const [schedule, q] = choice.value.split(" "), columns = plan.columns[schedule], rows = [];
    if (!columns) return;
    for (let i = columns.memory_ptr[q]; i < columns.memory_ptr[Number(q) + 1]; i++) {
      rows.push({ns: columns.memory_ns[i], bytes: columns.memory_bytes[i], change: columns.memory_bytes[i] - (rows.length ? rows.at(-1).bytes : 0)});
    }
    table.show(rows);
  };
  if (state.curve) choice.value = state.curve;
  choice.addEventListener("change", () => {
    Object.assign(state, {curve: choice.value, page: 0});
    show();
  });
  show();
  return element("div", {}, element("p", {}, choice), table.element);
}

// What moves between devices.
export function transfersPanel(plan, on) {
  const schedules = BOTH.filter(([schedule]) => plan.columns[schedule]);
  if (!schedules.length) return element("p", {}, "Loading …");
  const box = element("div", {});
  for (const [schedule, title] of schedules) {
    const rows = transfersOf(plan, schedule), moved = rows.reduce((sum, r) => sum + r.bytes, 0);
    box.append(element("h3", {}, title), element("p", {}, rows.length ? `${countText(rows.length)} transfers move ${byteText(moved)}.` : "Nothing moves between devices."));
    if (!rows.length) continue;
    const takenBy = (r) => {
      const [first, ...others] = takers(plan, r);
      return first === undefined ? "–" : `${nameOf(plan, first)}${others.length ? ` and ${others.length} more` : ""}`;
    };
    const table = new Table(`Transfers, ${title}`, [
      {title: "Made by", value: (r) => nameOf(plan, r.op)}, {title: "From", value: (r) => plan.devices[r.source]}, {title: "To", value: (r) => plan.devices[r.destination]},
      {title: "Bytes", value: (r) => r.bytes, text: (r) => byteText(r.bytes), number: true}, {title: "Starts", value: (r) => r.start, text: (r) => timeText(r.start), number: true},
      {title: "Takes", value: (r) => r.end - r.start, text: (r) => timeText(r.end - r.start), number: true},
      {title: "Waited for its link", value: (r) => r.wait, text: (r) => (r.wait > 0 ? timeText(r.wait) : ""), number: true},
      {title: "Taken by", value: takenBy},
    ], {pick: (r) => on.goToTransfer(schedule, r.bar), sort: 4, descending: false, state: on.state(`transfers ${schedule}`)});
    table.show(rows);
    box.append(table.element);
  }
  return box;
}

export function searchPanel(plan, on) {
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
      {label: "default plan", value: runtime ? overview.figures.default.makespan_s * 1e9 : peakOf(overview.figures.default)},
      {label: "lower bound", value: runtime ? overview.bounds.makespan_s * 1e9 : overview.bounds.peak_bytes},
    ];
    box.append(element("div", {class: "legend"}, element("span", {class: "key planned"}), "best so far ", element("span", {class: "key default"}), "mean of a generation"), curves.element);
    requestAnimationFrame(() => curves.show(trace.points, lines, runtime ? "ns" : "bytes"));
    const points = new Table("How the search went", [
      {title: "Part", value: (r) => r[0]}, {title: "Evaluations", value: (r) => r[1], text: (r) => countText(r[1]), number: true},
      {title: "Best so far", value: (r) => r[2], text: (r) => (r[2] === null ? "nothing fits" : text(r[2])), number: true},
      {title: "Mean of a generation", value: (r) => r[3], text: (r) => (r[3] === null ? "" : text(r[3])), number: true},
      {title: "Above the lower bound", value: (r) => r[2], text: (r) => (r[2] === null || !lines[1].value ? "–" : percentText(r[2] / lines[1].value - 1)), number: true},
    ], {state: on.state("search")});
    points.show(trace.points);
    box.append(element("details", {}, element("summary", {}, "As a table"), points.element));
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
    ], {sort: runtime ? 1 : 2, descending: false, state: on.state("seeds")});
    table.show(trace.seeds);
    box.append(element("h3", {}, "Seeds"), table.element);
  }
  return box;
}

// The measured step against the predicted one, op by op.
export function measuredPanel(plan, on) {
  const found = plan.overview.measured;
  if (!found) {
    return element("p", {class: "faint"}, "Nothing was measured for this plan. A program that runs with tf_regal.enable(logdir=…) records one call of each planned "
      + "function whose devices are CPUs; ops on GPUs and TPUs are not recorded.");
  }
  const table = new Table("Predicted and measured durations", [
    {title: "Op", value: (r) => nameOf(plan, r[0])}, {title: "Predicted", value: (r) => r[1], text: (r) => timeText(r[1]), number: true},
    {title: "Measured", value: (r) => r[2], text: (r) => timeText(r[2]), number: true},
    {title: "Error", value: (r) => (r[2] ? r[1] / r[2] - 1 : null), text: (r) => (r[2] ? percentText(r[1] / r[2] - 1) : "–"), number: true},
    {title: "Difference", value: (r) => Math.abs(r[1] - r[2]), text: (r) => timeText(Math.abs(r[1] - r[2])), number: true},
  ], {pick: (r) => on.goTo(r[0]), sort: 4, state: on.state("measured")});
  table.show(found.ops);
  return element("div", {}, element("p", {}, `One call took ${timeText(found.step_ns)} where ${timeText(found.predicted_ns)} were predicted `
    + `(${percentText(found.predicted_ns / found.step_ns - 1)}); ${countText(found.ops.length)} of ${countText(plan.overview.ops)} ops were seen. `
    + `The median op is off by ${percentText(found.median_error).replace("+", "")}; the median of what time is spent on by ${percentText(found.weighted_error)}.`), table.element);
}

export function opsPanel(plan, on) {
  const {overview, graph, names} = plan, {planned, default: before, measured} = plan.columns;
  if (!graph || !names || !planned) return element("p", {}, "Loading …");
  const time = (title, value) => ({title, value, text: (op) => timeText(value(op)), number: true});
  const idle = (title, columns) => ({title, value: (op) => columns.idle[op], text: (op) => (columns.idle[op] > 0 ? timeText(columns.idle[op]) : ""), number: true});
  const reason = (title, columns) => ({title, value: (op) => overview.reasons[columns.reason[op]]});
  const list = [
    {title: "Op", value: (op) => names.names[op]}, {title: "Type", value: (op) => overview.types[graph.arrays.type[op]]},
    {title: "Device", value: (op) => plan.devices[planned.device[op]]}, time("Starts", (op) => planned.op_start[op]),
    time("Takes", (op) => planned.op_end[op] - planned.op_start[op]),
  ];
  if (overview.has_details) {
    list.push({title: "Gives", value: (op) => names.outputs[op] || ""},
      {title: "Output", value: (op) => graph.outputBytes(op), text: (op) => byteText(graph.outputBytes(op)), number: true},
      idle("Lane idle before", planned), reason("Waited for", planned));
  }
  if (before) {
    list.push({title: "Default device", value: (op) => plan.devices[before.device[op]]}, time("Default start", (op) => before.op_start[op]),
      idle("Default idle before", before), reason("Default waited for", before));
  }
  if (measured) {
    const seen = (value) => (op) => (measured.op_end[op] > 0 ? value(op) : null);
    const some = (title, value) => ({title, value: seen(value), text: (op) => (measured.op_end[op] > 0 ? timeText(value(op)) : ""), number: true});
    list.push(some("Measured start", (op) => measured.op_start[op]), some("Measured, takes", (op) => measured.op_end[op] - measured.op_start[op]));
  }
  const table = new Table("All ops of the plan", list, {pick: on.goTo, sort: 3, descending: false, state: on.state("ops")});
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
  return element("div", {}, facts(rows), overview.notes.length ? element("h3", {}, "What was assumed") : null,
    element("ul", {}, ...overview.notes.map((note) => element("li", {}, note))));
}
