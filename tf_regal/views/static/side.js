// What stands beside the timeline: the selected op or transfer, or where devices stand idle; the same in words, and in the lines of a tip.

import {element} from "./dom.js";
import {byteText, timeText} from "./scales.js";
import {takers, transferOf, waitOf} from "./waits.js";

const MOST_NEIGHBOURS = 60;
export const SCHEDULES = {planned: "As planned", default: "By default", measured: "Measured"};

export const nameOf = (plan, op) => (plan.names ? plan.names.names[op] : `op ${op}`);

const typeOf = (plan, op) => (plan.graph ? plan.overview.types[plan.graph.arrays.type[op]] : "");

// "float32[32, 10]" of each output, and how many bytes they are.
function gives(plan, op) {
  const outputs = plan.names?.outputs[op];
  const bytes = plan.graph?.hasEdges ? byteText(plan.graph.outputBytes(op)) : "";
  return [outputs, bytes].filter(Boolean).join(", ");
}

function waitWords(plan, schedule, op) {
  const wait = waitOf(plan, schedule, op);
  return wait && `${wait.words}${wait.cause >= 0 ? nameOf(plan, wait.cause) : ""}`;
}

// A transfer's time between the end of the op that made the tensor and its own beginning.
function linkWords(plan, transfer) {
  if (!(transfer.wait > 0)) return "nothing: it began when the tensor was made";
  return `${timeText(transfer.wait)} for its link${transfer.behind >= 0 ? `, which moved what comes from ${nameOf(plan, transfer.behind)}` : ""}`;
}

// Lines of text on a bar of a schedule.
export function tipLines(plan, schedule, bar) {
  const columns = plan.columns[schedule], op = columns.op[bar];
  if (columns.transfer[bar]) {
    const transfer = transferOf(plan, schedule, bar);
    return [`Transfer of ${nameOf(plan, op)}`, `${plan.devices[transfer.source]} → ${plan.devices[transfer.destination]}: ${byteText(transfer.bytes)} in ${timeText(transfer.end - transfer.start)}`,
      `waited for ${linkWords(plan, transfer)}`];
  }
  const wait = waitWords(plan, schedule, op), given = gives(plan, op);
  return [nameOf(plan, op), [typeOf(plan, op), timeText(columns.end[bar] - columns.start[bar]), plan.devices[columns.device[op]]].filter(Boolean).join(" · "),
    given && `gives ${given}`, wait && `waited for ${wait}`].filter(Boolean);
}

// The same as a sentence, for those who hear it.
export function spoken(plan, schedule, bar) {
  return `Selected: ${tipLines(plan, schedule, bar).join("; ")}.`;
}

const heading = (text) => element("h3", {class: "op-name", tabindex: -1}, text);

export function facts(rows) {
  return element("dl", {}, ...rows.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

const link = (text, onclick) => element("button", {type: "button", class: "link", onclick}, text);

// on.goTo(op) selects another op.
export function opPanel(plan, op, on) {
  const {overview, graph, names} = plan;
  if (!graph || !names) return element("div", {class: "side"}, "Loading names …");
  const rows = [["Type", typeOf(plan, op)]];
  if (names.outputs[op]) rows.push(["Gives", names.outputs[op]]);
  if (graph.hasEdges) rows.push(["Output bytes", byteText(graph.outputBytes(op))]);
  if (graph.arrays.persistent[op]) rows.push(["Held all the time", byteText(graph.arrays.persistent[op])]);
  const parts = [];
  for (const schedule of plan.schedules) {
    const columns = plan.columns[schedule];
    if (!columns || (schedule === "measured" && !(columns.op_end[op] > 0))) continue;
    const [start, end] = [columns.op_start[op], columns.op_end[op]], wait = waitOf(plan, schedule, op);
    const said = [["Device", plan.devices[columns.device[op]]], ["Runs", `${timeText(end - start)}, from ${timeText(start)} to ${timeText(end)}`]];
    if (wait) {
      said.push(["Inputs were there", timeText(wait.ready)],
        ["Waited for", element("span", {}, wait.words, wait.cause >= 0 ? link(names.names[wait.cause], () => on.goTo(wait.cause)) : "")]);
      if (wait.idle > 0) said.push(["Its lane stood idle", timeText(wait.idle)]);
    }
    parts.push(element("h4", {}, SCHEDULES[schedule]), facts(said));
  }
  const edges = graph.hasEdges
    ? [...neighbours(plan, "Waits for", graph.predecessors(op), on), ...neighbours(plan, "Is waited for by", graph.successors(op), on)]
    : [element("p", {class: "faint"}, "This plan was made by a version that did not keep edges: plan again to see them.")];
  return element("div", {class: "side"}, heading(names.names[op]), facts(rows), ...parts, ...edges);
}

function neighbours(plan, title, list, on) {
  const shown = list.slice(0, MOST_NEIGHBOURS);
  const kinds = {control: " (control edge)", added: " (edge of the plan)"};
  return [element("h4", {}, `${title} (${list.length})`), element("ul", {class: "neighbours"}, ...shown.map((n) =>
    element("li", {}, link(nameOf(plan, n.op), () => on.goTo(n.op)), element("span", {class: "faint"}, n.kind === "data" ? ` ${byteText(n.bytes)}` : kinds[n.kind])))),
  list.length > shown.length ? element("div", {class: "faint"}, `and ${list.length - shown.length} more`) : null];
}

// A transfer of a schedule.
export function transferPanel(plan, schedule, bar, on) {
  const transfer = transferOf(plan, schedule, bar), {op, start, end} = transfer;
  const waiting = transfer.behind >= 0
    ? element("span", {}, `${timeText(transfer.wait)} for its link, which moved what comes from `, link(nameOf(plan, transfer.behind), () => on.goTo(transfer.behind)))
    : linkWords(plan, transfer);
  const list = takers(plan, transfer).map((taker) => ({op: taker, bytes: transfer.bytes, kind: "data"}));
  return element("div", {class: "side"}, heading(`Transfer of ${nameOf(plan, op)}`), element("h4", {}, SCHEDULES[schedule]), facts([
    ["From", plan.devices[transfer.source]], ["To", plan.devices[transfer.destination]], ["Bytes", byteText(transfer.bytes)],
    ["Runs", `${timeText(end - start)}, from ${timeText(start)} to ${timeText(end)}`], ["Waited for", waiting],
  ]), ...neighbours(plan, "Moves what is made by", [{op, bytes: transfer.bytes, kind: "data"}], on), ...neighbours(plan, "Is taken by", list, on));
}

// Where devices stand idle longest: shown while nothing is selected.
export function longestWaits(plan, on) {
  const columns = plan.columns.planned, invitation = "Select an op or a transfer to see what it waited for.";
  if (!columns || !plan.names || !plan.overview.has_details) return element("div", {class: "side faint"}, invitation);
  const order = Array.from(columns.idle.keys()).filter((op) => columns.idle[op] > 0).sort((a, b) => columns.idle[b] - columns.idle[a]).slice(0, 8);
  const what = {input: "an input", transfer: "a transfer", control: "a control edge", lane: "the link", start: "the start"};
  return element("div", {class: "side"}, element("h3", {}, "Longest idle times, planned"), order.length ? element("ul", {class: "neighbours"}, ...order.map((op) =>
    element("li", {}, `${plan.devices[columns.device[op]]}: ${timeText(columns.idle[op])} for ${what[plan.overview.reasons[columns.reason[op]]]} before `,
      link(nameOf(plan, op), () => on.goTo(op))))) : element("p", {}, "No device stands idle between its ops."),
  element("p", {class: "faint"}, `Largest peak: ${byteText(Math.max(0, ...Object.values(plan.overview.figures.predicted.peak_bytes)))}.`),
  element("p", {class: "faint"}, invitation));
}
