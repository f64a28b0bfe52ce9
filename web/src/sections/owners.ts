import { h, choices, replace } from "../dom";
import type { OwnerBytes } from "../data";
import { categoryColor, ownerColor } from "../colors";
import { word } from "../explain";
import { categoryName, momentName, ownerName, plain, shorten } from "../names";
import type { State } from "../state";
import { table, type Column } from "../table";
import { bytes } from "../units";
import { nothing, section } from "./section";

interface Row {
  owner: string; instance: string; category: string; load: number; inference: number; steady: number;
  file: boolean; blocks: number;
}
type At = "load" | "inference" | "steady";

const ids = ["load", "inference", "steady"] as const;

export function filterOwners(text: string): void {
  const input = document.querySelector<HTMLInputElement>("#owners input.filter");
  if (!input) return;
  input.value = text;
  input.dispatchEvent(new Event("input"));
}

export function owners(state: State): HTMLElement {
  const { peaks } = state.report.summary;
  const detailed = rows(state, true);
  if (detailed.length === 0) return section("owners", "Owners and categories", "", nothing("No owner is known."));
  const holder = h("div");
  const draw = (byInstance: boolean) => replace(holder, grid(rows(state, byInstance), byInstance));
  const several = new Set(detailed.map((row) => row.owner + row.instance)).size > new Set(detailed.map((row) => row.owner)).size;
  draw(several);
  const missing = ids.filter((id) => !peaks[id]).map(momentName);
  return section("owners", "Owners and categories",
    `Live bytes at each moment; hatched bars are file-backed, which the system may drop. Host stands beside the peaks, not in them.${missing.length ? ` Not seen: ${missing.join(", ")}.` : ""}`,
    choices("Detail", [["category", "by category"], ["instance", "by instance"]] as const, several ? "instance" : "category", (value) => draw(value === "instance")), holder);
}

function rows(state: State, byInstance: boolean): Row[] {
  const found = new Map<string, Row>();
  for (const at of ids) for (const owner of state.report.summary.peaks[at]?.moment.owners ?? []) add(found, owner, at, byInstance);
  return [...found.values()];
}

function add(found: Map<string, Row>, owner: OwnerBytes, at: At, byInstance: boolean): void {
  if (owner.owner === "profiler") return;
  for (const one of owner.categories) for (const [count, file] of [[one.private_bytes, false], [one.file_bytes, true]] as const) {
    if (count === 0) continue;
    const instance = byInstance ? owner.instance ?? "" : "";
    const id = [owner.owner, instance, one.category, file].join("\n");
    const row = found.get(id) ?? { owner: owner.owner, instance, category: one.category, load: 0, inference: 0, steady: 0, file, blocks: 0 };
    row[at] += count;
    row.blocks = Math.max(row.blocks, one.blocks);
    found.set(id, row);
  }
}

function grid(found: Row[], byInstance: boolean): HTMLElement {
  const counted = found.filter((row) => row.owner !== "host");
  const largest = Math.max(1, ...counted.flatMap((row) => [row.load, row.inference]));
  const columns: Column<Row>[] = [
    { label: "Owner", value: (row) => ownerName(row.owner), cell: (row) => h("span", { class: "owner" }, h("i", { style: `background-color:${ownerColor(row.owner)}` }), word(row.owner, ownerName(row.owner))) },
    ...(byInstance ? [{ label: "Instance", value: (row: Row) => plain(row.instance), cell: (row: Row) => row.instance ? shorten(plain(row.instance)) : row.owner.startsWith("delegate:") ? "shared" : "" }] : []),
    { label: "Category", value: (row) => categoryName(row.category), cell: (row) => h("span", { class: "owner" }, h("i", { style: `background-color:${categoryColor(row.category)}` }), word(row.category, categoryName(row.category))) },
    { label: "Backing", value: (row) => (row.file ? "file" : "private") },
    { label: "Blocks", value: (row) => row.blocks, title: "The most at any of the moments" },
    ...ids.map((at): Column<Row> => ({ label: at === "steady" ? "Steady" : `Peak of ${at}`, value: (row) => row[at], cell: (row) => row[at] ? bytes(row[at]) : "-" })),
    { label: "", value: (row) => Math.max(row.load, row.inference), title: "Sort by the larger peak", cell: (row) => row.owner === "host" ? "" : h("div", { class: "bar", "aria-hidden": "true" },
      h("span", { class: row.file ? "file" : "", style: `width:${(100 * Math.max(row.load, row.inference)) / largest}%;background-color:${ownerColor(row.owner)}` })) },
  ];
  return table(found, columns, {
    label: "owners and categories", filter: true, sort: columns.length - 1, most: 40, rowClass: (row) => row.owner === "host" ? "beside" : "",
    footer: (shown) => {
      const sum = (at: At) => shown.filter((row) => row.owner !== "host").reduce((all, row) => all + row[at], 0);
      return h("tr", {}, h("th", { scope: "row", colspan: columns.length - 4 }, "Sum without host"), ...ids.map((at) => h("td", { class: "number", "data-sum": at }, bytes(sum(at)))), h("td", {}));
    },
  });
}
