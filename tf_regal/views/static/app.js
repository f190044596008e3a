// Puts the parts together: the list of plans, the chosen plan's views, and what is selected.

import {categoryColor} from "./colors.js";
import {clear, element, focused, isDark, refocus} from "./dom.js";
import {matches} from "./graph.js";
import {chip, planTable} from "./list.js";
import {cards, measuredPanel, memoryPanel, notesPanel, opsPanel, searchPanel, transfersPanel} from "./panels.js";
import {PlanView} from "./plan.js";
import {timeText} from "./scales.js";
import {longestWaits, opPanel, spoken, transferPanel} from "./side.js";
import {Timeline} from "./timeline.js";
import {barOf, takers, transferOf} from "./waits.js";

const TABS = [
  ["timeline", "Timeline"], ["memory", "Memory"], ["transfers", "Transfers"], ["search", "Search"], ["measured", "Measured"], ["ops", "Ops"], ["notes", "About"],
];
const PANELS = {
  memory: memoryPanel, transfers: transfersPanel, search: searchPanel, measured: measuredPanel, ops: opsPanel, notes: notesPanel,
};
const TITLES = {planned: "Planned", default: "Default", measured: "Measured"};

export class App {
  constructor(root, data) {
    [this.root, this.data] = [root, data];
    this.plans = new Map();
    this.tab = "timeline";
    [this.request, this.comparison] = [0, 0]; // the newest choice, and the newest comparison: what comes later of older ones does not count
    this.shown = new Set(["planned", "default"]);
    this.colorBy = "type";
    this.knownMeasured = new Set(); // plans whose measured schedule has been shown: whoever unticks it does not want it
    this.tables = new Map(); // how each table is sorted: kept where its plan is loaded anew
    this.listBox = element("section", {class: "list", "aria-label": "Plans"});
    this.main = element("section", {class: "main", "aria-label": "The chosen plan"});
    this.message = element("div", {class: "message", role: "alert", hidden: true});
    this.live = element("div", {class: "unseen", role: "status", "aria-live": "polite"});
    root.replaceChildren(this.message, this.live, this.listBox, this.main);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
  }

  async start() {
    try {
      const {plans, problems} = await this.data.plans();
      const listed = JSON.stringify([plans, problems]);
      if (listed === this.listed && (this.chosen || this.explained)) return; // nothing is new, and nobody is disturbed
      this.listed = listed;
      this.plans.clear();
      this.summaries = plans;
      this.problems = problems || [];
      this.paintList();
      const explained = plans.find((s) => s.id === this.explained);
      if (explained && !explained.has_plan) {
        this.explain(explained);
        return;
      }
      const known = explained || plans.find((s) => s.id === this.chosen?.id && s.has_plan);
      const first = known || plans.find((s) => s.has_plan && s.status === "planned") || plans.find((s) => s.has_plan);
      if (first) await this.choose(first.id, Boolean(known));
      else this.paintEmpty();
    } catch (error) {
      this.say(`The plans could not be loaded: ${error.message}`);
    }
  }

  // Looks for new plans; keeps what is chosen.
  async reload() {
    const focus = focused(this.root);
    await this.start();
    refocus(this.root, focus);
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
    this.list = planTable(this.summaries, {
      pick: (s) => (s.has_plan ? this.choose(s.id) : this.explain(s)), isCurrent: (s) => s.id === (this.explained || this.chosen?.id), state: this.state("list"),
    });
    this.listBox.hidden = this.data.isSingle === true;
    clear(this.listBox, element("h2", {}, `Plans (${this.summaries.length})`),
      this.problems.length ? element("div", {class: "message"}, this.problems.join("\n")) : null, this.list.element,
      element("p", {class: "faint"}, "Default, planned and measured: the objective; in brackets its change against the default plan, where below 0 is better."));
  }

  state(of) {
    if (!this.tables.has(of)) this.tables.set(of, {});
    return this.tables.get(of);
  }

  // A function without a plan.
  explain(summary) {
    this.request++;
    if (this.compared) this.endComparison();
    [this.chosen, this.selected, this.explained] = [null, null, summary.id];
    this.list.mark();
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
    const request = ++this.request, other = keep ? this.compared?.id : null;
    try {
      const view = await this.planView(id), compared = other ? await this.planView(other).catch(() => null) : null;
      if (request !== this.request) return; // another one was chosen meanwhile
      // What was selected stays where it is of the plan that is looked at anew.
      if (!keep || ![id, compared?.id].includes(this.selected?.id)) this.selected = null;
      if (!keep) this.say("");
      this.comparison++;
      if (this.compared && !compared) this.endComparison();
      [this.chosen, this.compared, this.explained, this.found] = [view, compared, null, null];
      this.list.mark();
      this.paintPlan();
      await this.loadRest(view);
    } catch (error) {
      if (request !== this.request) return;
      this.chosen = null;
      this.say(`This plan could not be loaded: ${error.message}`);
      clear(this.main);
      return;
    }
    if (this.compared && request === this.request) await this.loadCompared();
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
      if (this.chosen === view || this.tab === "timeline") this.paintTab(this.tab === "timeline");
      if (this.query && this.tab === "timeline") this.find(this.query);
    }
  }

  async loadCompared() {
    const view = this.compared;
    try {
      await this.loadRest(view);
    } catch (error) {
      if (this.compared !== view) return;
      this.say(`The other plan could not be loaded: ${error.message}`);
      this.endComparison();
      this.refreshTracks();
    }
  }

  endComparison() {
    this.compared = null;
    this.showSchedule("default", this.hadDefault);
  }

  // Ticks or unticks a schedule.
  showSchedule(name, isShown) {
    if (isShown) this.shown.add(name);
    else this.shown.delete(name);
    const box = this.panel?.querySelector(`input[name=${name}]`);
    if (box) box.checked = isShown;
  }

  async compareWith(id) {
    const request = this.request, comparison = ++this.comparison;
    const isLatest = () => request === this.request && comparison === this.comparison;
    this.select(0, -1); // it may be of the plan that goes
    if (!id) {
      this.endComparison();
      this.refreshTracks();
      return;
    }
    try {
      const view = await this.planView(id);
      if (!isLatest()) return;
      if (!this.compared) {
        // One plan beside the other: their defaults are there to be ticked.
        this.hadDefault = this.shown.has("default");
        this.showSchedule("default", false);
      }
      this.compared = view;
    } catch (error) {
      if (isLatest()) this.say(`The other plan could not be loaded: ${error.message}`);
      return;
    }
    this.refreshTracks();
    await this.loadCompared();
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
    if (this.tab === "timeline") {
      if (!keepTimeline || !this.timeline?.element.isConnected) this.paintTimeline();
      else this.paintLegend();
      this.timeline.selected = this.selection(); // edges may have come
      this.paintSide();
      return;
    }
    clear(this.panel, PANELS[this.tab](view, this.links(view)));
  }

  // What a plan's panels do to the rest: `on` of panels.js and side.js.
  links(view) {
    return {
      goTo: (op) => this.goTo(view, op, true), goToTransfer: (schedule, bar) => this.goToTransfer(view, schedule, bar),
      state: (caption) => this.state(`${view.id} ${caption}`),
    };
  }

  paintTimeline() {
    const view = this.chosen, before = this.timeline;
    this.timeline = new Timeline({select: (track, bar) => this.select(track, bar), next: (step) => this.nextFound(step)});
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
    if (view.schedules.includes("measured") && !this.knownMeasured.has(view.id)) {
      this.knownMeasured.add(view.id);
      this.shown.add("measured");
    }
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
    this.side = element("aside", {class: "side-box", "aria-label": "What is selected"});
    clear(this.panel, toolbar, this.legend, element("div", {class: "split"}, this.timeline.element, this.side),
      element("p", {class: "faint help"}, "Drag or use the arrow keys to move, Ctrl with the wheel, a pinch, a double click or + and − to zoom; "
        + "click an op or a transfer for what it waited for. Bars narrower than a pixel are drawn as one."));
    this.refreshTracks();
    this.paintLegend();
    if (this.query && !this.found) this.find(this.query);
  }

  tracks() {
    const found = [];
    const add = (view, prefix) => {
      for (const schedule of view.schedules) {
        if (!this.shown.has(schedule)) continue;
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
    this.timeline.reference = this.chosen;
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
    if (!view?.names || !view.graph) return;
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
    this.found.at = (Math.max(this.found.at, step < 0 ? 0 : -1) + step + list.length) % list.length;
    this.goTo(this.found.plan, this.found.sorted[this.found.at]);
    this.count.textContent = `${this.found.at + 1} of ${list.length}`;
  }

  // Selects a bar of a track; −1: none.
  select(track, bar) {
    this.say("");
    if (bar < 0) {
      this.selected = null;
      this.live.textContent = "Nothing is selected.";
    } else {
      const {plan, schedule, columns} = this.timeline.tracks[track];
      this.selected = {id: plan.id, op: columns.op[bar], schedule, transfer: columns.transfer[bar] ? bar : -1};
      this.live.textContent = spoken(plan, schedule, bar);
    }
    this.timeline.selected = this.selection();
    this.timeline.redraw();
    this.paintSide();
  }

  // The plan of what is selected; null: nothing is, or its plan is not there any more.
  selectedView() {
    return [this.chosen, this.compared].find((view) => view && view.id === this.selected?.id) || null;
  }

  // What is selected with its neighbours, as the timeline draws it; null: nothing.
  selection() {
    const plan = this.selectedView();
    if (!plan) return null;
    const {op, schedule, transfer} = this.selected, ends = (list) => list.map((neighbour) => neighbour.op);
    if (transfer >= 0) {
      return plan.columns[schedule] ? {plan, op, schedule, transfer, before: [op], after: takers(plan, transferOf(plan, schedule, transfer))} : null;
    }
    return {plan, op, schedule, transfer, before: plan.graph ? ends(plan.graph.predecessors(op)) : [], after: plan.graph ? ends(plan.graph.successors(op)) : []};
  }

  // Selects an op of a plan and brings it into view. withFocus: where what was pressed goes, so that the keyboard goes on with what it led to.
  goTo(view, op, withFocus = false) {
    this.goToBar(view, (track) => barOf(track.columns, op), withFocus);
  }

  goToTransfer(view, schedule, bar) {
    this.showSchedule(schedule, true);
    this.goToBar(view, (track) => (track.schedule === schedule ? bar : -1), true);
  }

  goToBar(view, barIn, withFocus) {
    if (this.tab !== "timeline") this.open("timeline");
    const {tracks} = this.timeline;
    const track = tracks.findIndex((t) => t.plan === view && t.columns && barIn(t) >= 0);
    if (track < 0) {
      this.say("This is in none of the schedules that are shown: choose one that has it, above the timeline.");
      return;
    }
    const bar = barIn(tracks[track]);
    this.select(track, bar);
    this.timeline.reveal(track, bar);
    if (withFocus) this.side.querySelector(".op-name")?.focus();
  }

  paintSide() {
    if (!this.side) return;
    const view = this.selectedView();
    if (!view) {
      clear(this.side, longestWaits(this.chosen, this.links(this.chosen)));
      return;
    }
    const {op, schedule, transfer} = this.selected, on = this.links(view);
    if (transfer < 0) clear(this.side, opPanel(view, op, on));
    else clear(this.side, view.columns[schedule] ? transferPanel(view, schedule, transfer, on) : element("div", {class: "side"}, "Loading …"));
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
