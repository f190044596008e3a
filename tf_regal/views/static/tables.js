// A table that can be sorted, paged and read by screen readers.

import {clear, element} from "./dom.js";

const PAGE = 100;

export class Table {
  // columns: [{title, value(row), text(row) = value, number: whether right-aligned}]. pick(row): what a click on the first column does.
  constructor(caption, columns, {pick = null, sort = null, descending = true} = {}) {
    [this.columns, this.pick, this.sortBy, this.descending, this.page] = [columns, pick, sort, descending, 0];
    this.rows = [];
    this.head = element("tr");
    this.body = element("tbody");
    this.foot = element("div", {class: "pages"});
    this.element = element("div", {class: "table-box"},
      element("table", {}, element("caption", {class: "unseen"}, caption), element("thead", {}, this.head), this.body), this.foot);
  }

  show(rows) {
    [this.rows, this.page] = [rows, 0];
    this.arrange();
  }

  arrange() {
    const column = this.columns[this.sortBy];
    if (column) {
      const sign = this.descending ? -1 : 1;
      this.rows = [...this.rows].sort((a, b) => {
        const [x, y] = [column.value(a), column.value(b)];
        const missing = (v) => v === null || v === undefined || Number.isNaN(v);
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
    }
    this.paint();
  }

  paint() {
    clear(this.head, ...this.columns.map((column, i) => {
      const state = this.sortBy === i ? (this.descending ? "descending" : "ascending") : "none";
      const button = element("button", {type: "button", onclick: () => this.sort(i)}, column.title,
        element("span", {"aria-hidden": "true", class: "arrow"}, state === "none" ? "" : state === "ascending" ? "▲" : "▼"));
      return element("th", {scope: "col", "aria-sort": state, class: column.number ? "number" : null}, button);
    }));
    const shown = this.rows.slice(this.page * PAGE, (this.page + 1) * PAGE);
    clear(this.body, ...shown.map((row) => {
      const cells = this.columns.map((column, i) => {
        const content = column.text ? column.text(row) : String(column.value(row));
        const inner = i === 0 && this.pick
          ? element("button", {type: "button", class: "link", onclick: () => this.pick(row)}, content) : content;
        return element("td", {class: column.number ? "number" : null}, inner);
      });
      return element("tr", {}, ...cells);
    }));
    const pages = Math.max(1, Math.ceil(this.rows.length / PAGE));
    clear(this.foot, ...(pages > 1 ? [
      element("button", {type: "button", disabled: this.page === 0, onclick: () => this.turn(-1)}, "Previous"),
      element("span", {}, `rows ${this.page * PAGE + 1} to ${Math.min(this.rows.length, (this.page + 1) * PAGE)} of ${this.rows.length}`),
      element("button", {type: "button", disabled: this.page === pages - 1, onclick: () => this.turn(1)}, "Next"),
    ] : []));
  }

  sort(i) {
    [this.descending, this.sortBy, this.page] = [this.sortBy === i ? !this.descending : Boolean(this.columns[i].number), i, 0];
    this.arrange();
    this.head.querySelectorAll("button")[i]?.focus();
  }

  turn(step) {
    this.page += step;
    this.paint();
  }
}
