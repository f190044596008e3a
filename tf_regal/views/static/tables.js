// A table that can be sorted, paged and read by screen readers.

import {clear, element} from "./dom.js";

const PAGE = 100;

export class Table {
  // columns: [{title, value(row), text(row) = value, number: whether right-aligned}]. pick(row): what a click on the first column does.
  // isCurrent(row): whether it is what is looked at. state: an object that keeps how the table is sorted and which page it shows, to be given to the
  // table that takes this one's place.
  constructor(caption, columns, {pick = null, sort = null, descending = true, isCurrent = null, state = {}} = {}) {
    [this.columns, this.pick, this.isCurrent, this.state] = [columns, pick, isCurrent, state];
    if (!("sort" in state)) Object.assign(state, {sort, descending, page: 0});
    this.rows = [];
    this.head = element("tr");
    this.body = element("tbody");
    this.foot = element("div", {class: "pages"});
    this.element = element("div", {class: "table-box"},
      element("table", {}, element("caption", {class: "unseen"}, caption), element("thead", {}, this.head), this.body), this.foot);
  }

  get pages() {
    return Math.max(1, Math.ceil(this.rows.length / PAGE));
  }

  show(rows) {
    this.rows = rows;
    this.state.page = Math.min(this.state.page, this.pages - 1);
    this.arrange();
  }

  arrange() {
    const column = this.columns[this.state.sort];
    if (column) {
      const sign = this.state.descending ? -1 : 1;
      const missing = (v) => v === null || v === undefined || Number.isNaN(v);
      const values = new Map(this.rows.map((row) => [row, column.value(row)]));
      this.rows = [...this.rows].sort((a, b) => {
        const [x, y] = [values.get(a), values.get(b)];
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
    }
    this.paint();
  }

  paint() {
    const {sort, descending, page} = this.state;
    clear(this.head, ...this.columns.map((column, i) => {
      const order = sort === i ? (descending ? "descending" : "ascending") : "none";
      const button = element("button", {type: "button", onclick: () => this.sort(i)}, column.title,
        element("span", {"aria-hidden": "true", class: "arrow"}, order === "none" ? "" : order === "ascending" ? "▲" : "▼"));
      return element("th", {scope: "col", "aria-sort": order, class: column.number ? "number" : null}, button);
    }));
    this.shown = this.rows.slice(page * PAGE, (page + 1) * PAGE);
    clear(this.body, ...this.shown.map((row) => {
      const cells = this.columns.map((column, i) => {
        const content = column.text ? column.text(row) : String(column.value(row));
        const inner = i === 0 && this.pick
          ? element("button", {type: "button", class: "link", onclick: () => this.pick(row)}, content) : content;
        return element("td", {class: column.number ? "number" : null}, inner);
      });
      return element("tr", {}, ...cells);
    }));
    this.mark();
    clear(this.foot, ...(this.pages > 1 ? [
      element("button", {type: "button", disabled: page === 0, onclick: () => this.turn(-1)}, "Previous"),
      element("span", {role: "status"}, `rows ${page * PAGE + 1} to ${Math.min(this.rows.length, (page + 1) * PAGE)} of ${this.rows.length}`),
      element("button", {type: "button", disabled: page === this.pages - 1, onclick: () => this.turn(1)}, "Next"),
    ] : []));
  }

  // Which row is looked at may change while the table stays.
  mark() {
    if (!this.isCurrent) return;
    this.shown.forEach((row, i) => {
      if (this.isCurrent(row)) this.body.rows[i].setAttribute("aria-current", "true");
      else this.body.rows[i].removeAttribute("aria-current");
    });
  }

  sort(i) {
    const {sort, descending} = this.state;
    Object.assign(this.state, {descending: sort === i ? !descending : Boolean(this.columns[i].number), sort: i, page: 0});
    this.arrange();
    this.head.querySelectorAll("button")[i]?.focus();
  }

  turn(step) {
    this.state.page += step;
    this.paint();
    // The button that was pressed is a new one now, or cannot be pressed any more.
    const [previous, next] = this.foot.querySelectorAll("button");
    const wanted = step < 0 ? previous : next;
    (wanted.disabled ? (step < 0 ? next : previous) : wanted).focus();
  }
}
