// Tables that sort and filter.

import { h, replace } from "./dom";

export interface Column<R> {
  label: string;
  /** What sorts and filters; numbers stand to the right. */
  value: (row: R) => string | number;
  cell?: (row: R) => Node | string;
  title?: string;
  /** Sorts by a number and shows words. */
  words?: boolean;
}

export interface TableOptions<R> {
  label: string;
  sort?: number;
  filter?: boolean;
  most?: number;
  footer?: (shown: R[]) => Node | null;
  rowClass?: (row: R) => string;
}

export function table<R>(rows: R[], columns: Column<R>[], options: TableOptions<R>): HTMLElement {
  let sorted = options.sort ?? -1;
  let descending = true;
  let needle = "";
  let most = options.most ?? Infinity;
  const body = h("tbody");
  const foot = h("tfoot");
  const more = h("button", { type: "button", class: "more", click: () => { most += 200; draw(); } });
  const numeric = columns.map((column) => rows.length > 0 && typeof column.value(rows[0]!) === "number");
  const right = columns.map((column, index) => numeric[index] === true && !column.words);
  const headers = columns.map((column, index) =>
    h("th", { scope: "col", class: right[index] ? "number" : "" },
      h("button", { type: "button", title: column.title ?? `Sort by ${column.label}`, click: () => sortBy(index) }, column.label)));

  function sortBy(index: number): void {
    descending = sorted === index ? !descending : numeric[index] === true;
    sorted = index;
    draw();
  }

  function visible(): R[] {
    const found = needle === "" ? [...rows] : rows.filter((row) =>
      columns.some((column) => String(column.value(row)).toLowerCase().includes(needle)));
    const column = columns[sorted];
    if (column) {
      const sign = descending ? -1 : 1;
      found.sort((a, b) => sign * compare(column.value(a), column.value(b)));
    }
    return found;
  }

  function draw(): void {
    const found = visible();
    headers.forEach((header, index) =>
      header.setAttribute("aria-sort", index !== sorted ? "none" : descending ? "descending" : "ascending"));
    replace(body, ...found.slice(0, most).map((row) => h("tr", { class: options.rowClass?.(row) ?? "" },
      ...columns.map((column, index) => h("td", { class: right[index] ? "number" : "" },
        column.cell ? column.cell(row) : String(column.value(row)))))));
    if (found.length === 0)
      replace(body, h("tr", {}, h("td", { colspan: columns.length, class: "nothing" }, needle ? "Nothing matches." : "Nothing.")));
    replace(foot, options.footer?.(found) ?? null);
    more.textContent = `Show more (${found.length - most} left)`;
    more.hidden = found.length <= most;
  }

  draw();
  const filter = options.filter ? h("input", {
    type: "search", placeholder: "Filter", "aria-label": `Filter ${options.label}`, class: "filter",
    input: (event: Event) => { needle = (event.target as HTMLInputElement).value.toLowerCase(); draw(); },
  }) : null;
  return h("div", { class: "table" }, filter,
    h("div", { class: "scroll" }, h("table", { "aria-label": options.label }, h("thead", {}, h("tr", {}, ...headers)), body, foot)), more);
}

function compare(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
