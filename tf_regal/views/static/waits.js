// Why ops and transfers began when they did. No DOM.

import {above} from "./bars.js";

const WORDS = {
  start: "nothing: it could begin at once", input: "its input, made by ", transfer: "the transfer of what comes from ", control: "a control edge from ",
  lane: "a free lane of its device, taken by ",
};

// What an op of a schedule waited for last: {words, cause: the op that the words end with or −1, ready: when its inputs were there, idle: how long its
// lane stood idle, both in ns}; null where that is not known.
export function waitOf(plan, schedule, op) {
  const columns = plan.columns[schedule];
  if (!columns || schedule === "measured" || !plan.overview.has_details) return null;
  const cause = columns.cause[op], reason = plan.overview.reasons[columns.reason[op]];
  return {words: cause < 0 && reason === "lane" ? "a free lane of its device" : WORDS[reason], cause, ready: columns.ready[op], idle: columns.idle[op]};
}

// The number of the row that a bar is on.
export function rowOf(columns, bar) {
  return above(columns.row_ptr, 0, columns.row_ptr.length, bar) - 1;
}

// The bar of an op; −1 where the schedule has none.
export function barOf(columns, op) {
  if (!columns.barOfOp) {
    columns.barOfOp = new Int32Array(columns.op_start.length).fill(-1);
    for (let bar = 0; bar < columns.op.length; bar++) if (!columns.transfer[bar]) columns.barOfOp[columns.op[bar]] = bar;
  }
  return columns.barOfOp[op];
}

// What is known of the transfer that a bar stands for; wait: ns from the end of the op that made the tensor, behind: whose tensor the link moved
// meanwhile (−1: nothing's).
export function transferOf(plan, schedule, bar) {
  const columns = plan.columns[schedule], number = rowOf(columns, bar);
  const {source, destination} = plan.overview.schedules[schedule].rows[number];
  const op = columns.op[bar], [start, end] = [columns.start[bar], columns.end[bar]];
  const wait = start - columns.op_end[op];
  const isBehind = wait > 0 && bar > columns.row_ptr[number] && columns.end[bar - 1] >= start;
  return {schedule, bar, op, tensor: columns.tensor[bar], source, destination, bytes: columns.bytes[bar], start, end, wait, behind: isBehind ? columns.op[bar - 1] : -1};
}

export function transfersOf(plan, schedule) {
  const {transfer} = plan.columns[schedule], found = [];
  for (let bar = 0; bar < transfer.length; bar++) if (transfer[bar]) found.push(transferOf(plan, schedule, bar));
  return found;
}

// The ops at a transfer's destination that take what it moves.
export function takers(plan, transfer) {
  if (!plan.graph?.hasEdges || transfer.tensor < 0) return [];
  const {device} = plan.columns[transfer.schedule];
  return Array.from(plan.graph.consumers(transfer.tensor)).filter((op) => device[op] === transfer.destination);
}
