// One plan with the pieces of it that have come so far.

import {Graph, layers} from "./graph.js";
import {shortDevices} from "./dom.js";

export class PlanView {
  constructor(data, summary) {
    [this.data, this.summary, this.id] = [data, summary, summary.id];
    this.columns = {};
    this.pending = {};
  }

  piece(name) {
    this.pending[name] ??= this.data.piece(this.id, name);
    return this.pending[name];
  }

  async loadOverview() {
    this.overview = await this.piece("overview.json");
    this.devices = shortDevices(this.overview.devices.map((device) => device.name));
    return this;
  }

  async loadColumns(schedule) {
    this.columns[schedule] = await this.piece(`${schedule}.bin`);
    if (schedule === "planned") {
      const {op_start, op_end} = this.columns.planned;
      this.longest = op_end.reduce((most, end, op) => Math.max(most, end - op_start[op]), 0);
    }
  }

  async loadGraph() {
    const graph = new Graph(await this.piece("graph.bin"));
    // Types by the time that they take: what fills the picture gets the colours that are easiest to tell apart.
    const count = new Array(this.overview.types.length).fill(0), time = count.slice();
    const {op_start, op_end} = this.columns.planned;
    graph.arrays.type.forEach((type, op) => {
      count[type]++;
      time[type] += op_end[op] - op_start[op];
    });
    const order = count.map((_, type) => type).sort((a, b) => time[b] - time[a] || count[b] - count[a]);
    this.colorOfType = [];
    order.forEach((type, place) => (this.colorOfType[type] = place));
    this.typeCount = count;
    this.typeOrder = order;
    this.graph = graph;
  }

  async loadNames() {
    const names = await this.piece("names.json");
    this.layers = layers(names.names);
    this.names = names;
  }

  // The colour of each op type: beside another plan that one's, so that a type has one colour in both.
  typeColors(beside) {
    if (!beside?.graph || beside === this) return this.colorOfType;
    if (this.coloredBy !== beside) {
      const known = new Map(beside.overview.types.map((name, type) => [name, beside.colorOfType[type]]));
      let next = known.size;
      this.colorsBeside = this.overview.types.map((name) => known.get(name) ?? next++);
      this.coloredBy = beside;
    }
    return this.colorsBeside;
  }

  get schedules() {
    return Object.keys(this.overview.schedules);
  }

  track(schedule, title) {
    return {plan: this, schedule, title, outline: this.overview.schedules[schedule], columns: this.columns[schedule] || null};
  }
}
