// Puts the parts together: the list of plans, the chosen plan's views, and what is selected.

import {categoryColor} from "./colors.js";
import {clear, element, isDark} from "./dom.js";
import {matches} from "./graph.js";
import {cards, change, chip, measuredChange, measuredPanel, notesPanel, opPanel, opsPanel, peakPanel, searchPanel} from "./panels.js";
import {PlanView} from "./plan.js";
import {byteText, percentText, timeText} from "./scales.js";
import {Table} from "./tables.js";
import {Timeline} from "./timeline.js";

const TABS = [["timeline", "Timeline"], ["peak", "Peak memory"], ["search", "Search"], ["measured", "Measured"], ["ops", "Ops"], ["notes", "About"]];
const TITLES = {planned: "Planned", default: "Default", measured: "Measured"};

export class App {
  constructor(root, data) {
    [this.root, this.data] = [root, data];
    this.plans = new Map();
    this.tab = "timeline";
    this.shown = new Set(["planned", "default"]);
    this.colorBy = "type";
    this.listBox = element("section", {class: "list", "aria-label": "Plans"});
    this.main = element("section", {class: "main", "aria-label": "The chosen plan"});
    this.message = element("div", {class: "message", role: "alert", hidden: true});
    root.replaceChildren(this.message, this.listBox, this.main);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
  }

  async start() {
    try {
      const {plans, problems} = await this.data.plans();
      this.summaries = plans;
      this.say((problems || []).join("\n"));
      this.paintList();
      const known = plans.find((s) => s.id === this.chosen?.id && s.has_plan);
      const first = known || plans.find((s) => s.has_plan && s.status === "planned") || plans.find((s) => s.has_plan);
      if (first) await this.choose(first.id, Boolean(known));
      else this.paintEmpty();
    } catch (error) {
      this.say(`The plans could not be loaded: ${error.message}`);
    }
  }

  // Looks for new plans; keeps what is chosen.
  async reload() {
    this.plans.clear();
    await this.start();
  }

  say(text) {
    this.message.hidden = !text;
    this.message.textContent = text;
  }

  paintEmpty() {
    const skipped = this.summaries.length;
    clear(this.main, element("h2", {}, skipped ? "No plan yet" : "Nothing here yet"), element("p", {}, skipped
      ? "Functions were seen, but none was planned: the list says why."
      : "Run a program with tf_regal.enable(logdir=…), call tf_regal.write_plan(plan, logdir), or use tf-regal plan --logdir, with the directory that TensorBoard shows."));
  }

  paintList() {
    const short = (s) => s.function.replace(/^__inference_/, "").replace(/_\d+$/, "");
    const table = new Table("Plans and skipped functions", [
      {title: "Function", value: short}, {title: "Status", value: (s) => s.status, text: (s) => chip(s.status)},
      {title: "Objective", value: (s) => s.objective || "", text: (s) => ({runtime: "time", peak_memory: "memory"})[s.objective] || "–"},
      {title: "Predicted", value: change, text: (s) => percentText(change(s)), number: true},
      {title: "Measured", value: measuredChange, text: (s) => percentText(measuredChange(s)), number: true},
      {title: "Topology", value: (s) => s.topology || "", text: (s) => s.topology || "–"},
    ], {pick: (s) => (s.has_plan ? this.choose(s.id) : this.explain(s))});
    table.show(this.summaries);
    this.listBox.hidden = this.data.isSingle === true;
    clear(this.listBox, element("h2", {}, `Plans (${this.summaries.length})`), table.element,
      element("p", {class: "faint"}, "Predicted and measured: change of the objective against the default plan; below 0 is better."));
  }

  // A function without a plan.
  explain(summary) {
    this.chosen = null;
    clear(this.main, element("h2", {}, summary.function), element("p", {}, chip(summary.status), ` ${summary.reason || ""}`));
  }

  async planView(id) {
    if (!this.plans.has(id)) {
      const view = new PlanView(this.data, this.summaries.find((s) => s.id === id));
      await view.loadOverview();
      this.plans.set(id, view);
    }
    return this.plans.get(id);
  }

  async choose(id, keep = false) {
    const request = (this.request = (this.request || 0) + 1);
    try {
      const view = await this.planView(id);
      if (request !== this.request) return; // another one was chosen meanwhile
      // What was selected stays where it is of the plan that is looked at anew.
      if (this.selectedView?.id !== id) this.selectedOp = -1;
      this.selectedView = view;
      this.say("");
      if (!keep) {
        this.compared = null;
      } else if (this.compared) {
        this.compared = await this.planView(this.compared.id).catch(() => null);
      }
      this.chosen = view;
      this.found = null;
      this.paintPlan();
      await this.loadRest(view);
    } catch (error) {
      if (request !== this.request) return;
      this.chosen = null;
      this.say(`This plan could not be loaded: ${error.message}`);
      clear(this.main);
    }
  }

  async loadRest(view) {
    const still = () => this.chosen === view || this.compared === view;
    await Promise.all(view.schedules.map((schedule) => view.loadColumns(schedule)));
    if (still()) this.refreshTracks();
    await view.loadGraph();
    if (still()) this.refreshTracks();
    await view.loadNames();
    if (still()) {
      this.refreshTracks();
      this.paintTab(this.tab === "timeline");
      if (this.query && this.tab === "timeline") this.find(this.query);
    }
  }

  async compareWith(id) {
    const request = this.request;
    this.select(0, -1); // what is selected may be of the plan that goes
    if (!id) {
      this.compared = null;
      this.refreshTracks();
      return;
    }
    try {
      const view = await this.planView(id);
      if (request !== this.request) return;
      this.compared = view;
      this.refreshTracks();
      await this.loadRest(this.compared);
    } catch (error) {
      if (request !== this.request) return;
      this.compared = null;
      this.say(`The other plan could not be loaded: ${error.message}`);
      this.refreshTracks();
    }
  }

  paintPlan() {
    const view = this.chosen, {summary} = view;
    const tabs = element("div", {role: "tablist", class: "tabs"}, ...TABS.map(([key, title]) =>
      element("button", {type: "button", role: "tab", id: `tab-${key}`, "aria-selected": String(this.tab === key), "aria-controls": "panel",
        onclick: () => this.open(key)}, title)));
    tabs.addEventListener("keydown", (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const at = TABS.findIndex(([key]) => key === this.tab);
      this.open(TABS[(at + step + TABS.length) % TABS.length][0]);
      tabs.querySelector(`#tab-${this.tab}`).focus();
    });
    this.panel = element("div", {id: "panel", role: "tabpanel", "aria-labelledby": `tab-${this.tab}`});
    const links = ["plan", "trace"].map((what) => [what, this.data.download(view.id, what)]).filter(([, url]) => url);
    clear(this.main, element("header", {class: "plan-head"}, element("h2", {}, summary.function), chip(summary.status),
      element("span", {class: "faint"}, `${view.overview.ops} ops on ${view.overview.topology}, objective: ${view.overview.objective}`),
      element("span", {class: "downloads"}, ...links.map(([what, url]) =>
        element("a", {href: url, download: ""}, what === "plan" ? "Download plan (JSON)" : "Download Chrome trace")))),
    summary.reason ? element("p", {class: "reason"}, summary.reason) : null, cards(view), tabs, this.panel);
    this.paintTab();
  }

  open(tab) {
    this.tab = tab;
    this.main.querySelectorAll("[role=tab]").forEach((button) => button.setAttribute("aria-selected", String(button.id === `tab-${tab}`)));
    this.panel.setAttribute("aria-labelledby", `tab-${tab}`);
    this.paintTab();
  }

  // keepTimeline: only what depends on names and edges is made anew.
  paintTab(keepTimeline = false) {
    const view = this.chosen;
    if (!view) return;
    const goTo = (op) => this.goTo(op);
    if (this.tab === "timeline") {
      if (!keepTimeline || !this.timeline?.element.isConnected) this.paintTimeline();
      else this.paintLegend();
      this.timeline.selected = this.selection(); // edges may have come
      this.paintSide();
      return;
    }
    const panel = {peak: peakPanel, search: searchPanel, measured: measuredPanel, ops: opsPanel, notes: notesPanel}[this.tab];
    clear(this.panel, panel(view, goTo));
  }

  paintTimeline() {
    const view = this.chosen, before = this.timeline;
    this.timeline = new Timeline({select: (track, op) => this.select(track, op), next: (step) => this.nextFound(step)});
    if (before && this.timelineOf === view.id) [this.timeline.end, this.timeline.view] = [before.end, before.view];
    this.timelineOf = view.id;
    this.timeline.selected = this.selection();
    const schedule = (name) => {
      const box = element("input", {type: "checkbox", name, checked: this.shown.has(name)});
      box.addEventListener("change", () => {
        if (box.checked) this.shown.add(name);
        else this.shown.delete(name);
        this.refreshTracks();
      });
      return element("label", {}, box, TITLES[name]);
    };
    if (view.schedules.includes("measured")) this.shown.add("measured");
    const color = element("select", {"aria-label": "Colour by"}, ...[["type", "op type"], ["layer", "layer"], ["device", "device"], ["cost", "duration"]].map(
      ([value, text]) => element("option", {value, selected: value === this.colorBy}, text)));
    color.addEventListener("change", () => {
      this.colorBy = color.value;
      this.refreshTracks();
      this.paintLegend();
    });
    const others = this.summaries.filter((s) => s.has_plan && s.id !== view.id);
    const compare = element("select", {"aria-label": "Compare with", disabled: !others.length}, element("option", {value: ""}, others.length ? "another plan …" : "no other plan"),
      ...others.map((s) => element("option", {value: s.id, selected: s.id === this.compared?.id}, `${s.function} (${s.objective}, ${s.topology})`)));
    compare.addEventListener("change", () => this.compareWith(compare.value));
    this.search = element("input", {type: "search", placeholder: "op name or type", "aria-label": "Search ops", value: this.query || null});
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextFound(event.shiftKey ? -1 : 1);
    });
    this.count = element("span", {class: "faint", role: "status"});
    const button = (text, label, act) => element("button", {type: "button", "aria-label": label, title: label, onclick: act}, text);
    const toolbar = element("div", {class: "toolbar"}, element("span", {class: "group"}, ...view.schedules.map(schedule)),
      element("label", {}, "Colour: ", color), element("label", {}, "Compare: ", compare),
      element("span", {class: "group"}, this.search, button("‹", "Previous match", () => this.nextFound(-1)), button("›", "Next match", () => this.nextFound(1)), this.count),
      element("span", {class: "group"}, button("−", "Zoom out", () => this.timeline.zoom(1 / 0.6)), button("+", "Zoom in", () => this.timeline.zoom(0.6)),
        button("Show all", "Show the whole step", () => this.timeline.fit())));
    this.legend = element("div", {class: "legend"});
    this.side = element("aside", {class: "side-box", "aria-label": "Selected op"});
    clear(this.panel, toolbar, this.legend, element("div", {class: "split"}, this.timeline.element, this.side),
      element("p", {class: "faint help"}, "Drag or use the arrow keys to move, Ctrl with the wheel, a pinch, a double click or + and − to zoom; "
        + "click an op for what it waited for. Bars narrower than a pixel are drawn as one."));
    this.refreshTracks();
    this.paintLegend();
  }

  tracks() {
    const found = [];
    const add = (view, prefix) => {
      for (const schedule of view.schedules) {
        if (!this.shown.has(schedule)) continue;
        if (this.compared && schedule === "default") continue;
        found.push(view.track(schedule, prefix ? `${prefix}: ${TITLES[schedule].toLowerCase()}` : TITLES[schedule]));
      }
    };
    add(this.chosen, this.compared ? `${this.chosen.summary.function} (${this.chosen.overview.topology})` : "");
    if (this.compared) add(this.compared, `${this.compared.summary.function} (${this.compared.overview.topology})`);
    return found;
  }

  refreshTracks() {
    if (this.tab !== "timeline" || !this.timeline?.element.isConnected) return;
    this.timeline.colorBy = this.colorBy;
    this.timeline.found = this.found;
    this.timeline.show(this.tracks());
  }

  paintLegend() {
    const view = this.chosen, dark = isDark();
    if (!view?.graph || !this.legend) return;
    if (this.colorBy === "type") {
      const shown = view.typeOrder.slice(0, 12);
      clear(this.legend, ...shown.map((type) => key(categoryColor(view.colorOfType[type], dark), `${view.overview.types[type]} (${view.typeCount[type]})`)),
        view.typeOrder.length > shown.length ? element("span", {class: "faint"}, `and ${view.typeOrder.length - shown.length} other types`) : null);
    } else if (this.colorBy === "device") {
      clear(this.legend, ...view.devices.map((name, q) => key(categoryColor(q, dark), name)));
    } else if (this.colorBy === "cost") {
      clear(this.legend, `pale: short, strong: long (the longest op takes ${timeText(view.longest || 0)})`);
    } else {
      clear(this.legend, "ops of one layer, by their names, have one colour");
    }
  }

  find(text) {
    this.query = text;
    const view = this.chosen;
    if (!view.names || !view.graph) return;
    const list = matches(view.names.names, view.overview.types, view.graph.arrays.type, text);
    this.found = text.trim() ? {plan: view, list, set: new Set(list), at: -1} : null;
    this.count.textContent = this.found ? `${list.length} found` : "";
    this.refreshTracks();
  }

  nextFound(step) {
    if (!this.found?.list.length) return;
    const {list} = this.found;
    // In the order of the planned starts.
    this.found.sorted ??= [...list].sort((a, b) => this.chosen.columns.planned.op_start[a] - this.chosen.columns.planned.op_start[b]);
    this.found.at = (this.found.at + step + list.length) % list.length;
    this.goTo(this.found.sorted[this.found.at], this.found.plan);
    this.count.textContent = `${this.found.at + 1} of ${list.length}`;
  }

  // Selects an op of a track's plan; −1: none.
  select(track, op) {
    const view = op >= 0 ? this.timeline.tracks[track].plan : this.chosen;
    this.selectedOp = op;
    this.selectedView = view;
    this.timeline.selected = this.selection();
    this.timeline.redraw();
    this.paintSide();
  }

  // The selected op with its neighbours, as the timeline draws it; null: none.
  selection() {
    const op = this.selectedOp ?? -1, view = this.selectedView || this.chosen;
    if (op < 0) return null;
    const ends = (list) => list.map((neighbour) => neighbour.op);
    return {plan: view, op, before: view.graph ? ends(view.graph.predecessors(op)) : [], after: view.graph ? ends(view.graph.successors(op)) : []};
  }

  // Selects an op of a plan, the chosen one unless it is said, and brings it into view.
  goTo(op, view = this.chosen) {
    if (this.tab !== "timeline") this.open("timeline");
    const track = this.timeline.tracks.findIndex((t) => t.plan === view && t.columns);
    if (track < 0) return; // not among what is shown
    this.select(track, op);
    this.timeline.reveal(track, op);
  }

  paintSide() {
    if (!this.side) return;
    if (this.selectedOp < 0 || this.selectedOp === undefined) {
      clear(this.side, this.longestWaits());
      return;
    }
    const view = this.selectedView || this.chosen;
    clear(this.side, opPanel(view, this.selectedOp, (op) => this.goTo(op, view)));
  }

  // Where devices stand idle longest: shown while nothing is selected.
  longestWaits() {
    const view = this.chosen, columns = view.columns.planned;
    if (!columns || !view.names || !view.overview.has_details) return element("div", {class: "side faint"}, "Select an op to see what it waits for.");
    const order = Array.from(columns.idle.keys()).filter((op) => columns.idle[op] > 0).sort((a, b) => columns.idle[b] - columns.idle[a]).slice(0, 8);
    const what = {input: "an input", transfer: "a transfer", control: "a control edge", lane: "the link", start: "the start"};
    return element("div", {class: "side"}, element("h3", {}, "Longest idle times, planned"), order.length ? element("ul", {class: "neighbours"}, ...order.map((op) =>
      element("li", {}, `${view.devices[columns.device[op]]}: ${timeText(columns.idle[op])} for ${what[view.overview.reasons[columns.reason[op]]]} before `,
        element("button", {type: "button", class: "link", onclick: () => this.goTo(op)}, view.names.names[op])))) : element("p", {}, "No device stands idle between its ops."),
    element("p", {class: "faint"}, `Largest peak: ${byteText(Math.max(0, ...Object.values(view.overview.figures.predicted.peak_bytes)))}.`),
    element("p", {class: "faint"}, "Select an op to see what it waits for."));
  }

  recolor() {
    this.timeline?.redraw();
    this.paintLegend();
    if (this.tab === "search") this.paintTab();
  }
}

// An entry of the legend: never broken between its colour and its name.
function key(color, text) {
  const swatch = element("span", {class: "swatch", "aria-hidden": "true"});
  swatch.style.backgroundColor = color;
  return element("span", {class: "legend-key"}, swatch, text);
}
