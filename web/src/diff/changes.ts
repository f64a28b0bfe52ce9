import type { Change, Diff } from "../data";
import { categoryColor, ownerColor } from "../colors";
import { choices, h, replace } from "../dom";
import { word } from "../explain";
import { categoryName, momentName, ownerName } from "../names";
import { nothing, section } from "../sections/section";
import { table, type Column } from "../table";
import { bytes, change, percent } from "../units";
import { highest, total } from "./verdict";

/** Owners and categories at one of the moments, the largest change first. */
export function changes(diff: Diff): HTMLElement {
  const moments = [...new Set(diff.changes.map((row) => row.at))];
  if (moments.length === 0) return section("changes", "What moved", "", nothing("No owner's category differs, or owners are not known."));
  const holder = h("div");
  const draw = (at: string) => replace(holder, grid(diff.changes.filter((row) => row.at === at)));
  const first = moments.find((at) => at === highest(diff)?.at) ?? moments[0]!;
  draw(first);
  return section("changes", "What moved", "By owner and category; the share is of the sum of all changes at that moment.",
    choices("Moment", moments.map((at) => [at, momentName(at)] as const), first, draw), holder);
}

function grid(rows: Change[]): HTMLElement {
  const largest = Math.max(1, ...rows.map((row) => Math.abs(row.delta_bytes)));
  const columns: Column<Change>[] = [
    { label: "Owner", value: (row) => ownerName(row.owner), cell: (row) => h("span", { class: "owner" }, h("i", { style: `background-color:${ownerColor(row.owner)}` }), word(row.owner, ownerName(row.owner))) },
    { label: "Category", value: (row) => categoryName(row.category), cell: (row) => h("span", { class: "owner" }, h("i", { style: `background-color:${categoryColor(row.category)}` }), word(row.category, categoryName(row.category))) },
    { label: "a", value: (row) => total(row.a), cell: (row) => bytes(total(row.a)) },
    { label: "b", value: (row) => total(row.b), cell: (row) => bytes(total(row.b)) },
    { label: "Change", value: (row) => row.delta_bytes, cell: (row) => change(row.delta_bytes) },
    { label: "Share", value: (row) => row.share, cell: (row) => percent(row.share, 1) },
    { label: "Blocks", value: (row) => row.b.blocks - row.a.blocks, cell: (row) => `${row.a.blocks} → ${row.b.blocks}` },
    { label: "", title: "Sort by the size of the change", value: (row) => Math.abs(row.delta_bytes), cell: (row) => scales(row, largest) },
  ];
  return table(rows, columns, {
    label: "changes by owner and category", sort: columns.length - 1, filter: rows.length > 8, most: 40,
    footer: (shown) => h("tr", {}, h("th", { scope: "row", colspan: 4 }, "Together"),
      h("td", { class: "number", "data-sum": "change" }, change(shown.reduce((sum, row) => sum + row.delta_bytes, 0))), h("td", { colspan: 3 })),
  });
}

/** To the left of the middle what went, to its right what came. */
function scales(row: Change, largest: number): HTMLElement {
  const width = (50 * Math.abs(row.delta_bytes)) / largest;
  const left = row.delta_bytes < 0 ? 50 - width : 50;
  return h("div", { class: "scales", "aria-hidden": "true" },
    h("span", { class: row.a.private_bytes === row.b.private_bytes ? "file" : "", style: `left:${left}%;width:${width}%;background-color:${ownerColor(row.owner)}` }));
}
