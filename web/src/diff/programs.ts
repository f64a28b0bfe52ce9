// The page of two programs: what their files say, and what the plan expects of each.

import { banner } from "../banner";
import type { FileChange, ProgramsReport } from "../data";
import { h } from "../dom";
import { plain, shorten } from "../names";
import { nothing, section } from "../sections/section";
import { table, type Column } from "../table";
import { bytes, change, digits } from "../units";
import { sides, type Page } from "./page";

const MOMENTS: Record<string, string> = { load: "Peak of load", inference: "Peak of inference", steady: "Steady" };

export function programsPage(report: ProgramsReport): Page {
  const { a, b, changes } = report.programs;
  const expected = changes.filter((row) => row.what === "estimate");
  const parts = [
    section("verdict", "Verdict", expected.length ? "Expected by the plan of each file; nothing was run." : "",
      changes.length === 0 ? h("p", { class: "sentence" }, "No change in what the files say of memory.") : null,
      expected.length ? h("div", { class: "figures three" }, ...expected.map(figure)) : null),
    section("changes", "What moved", "From the files alone; a change is b less a.",
      changes.length ? table(changes, columns(), { label: "changes of the files", sort: 5, filter: changes.length > 10, most: 60 }) : nothing("Nothing.")),
  ];
  return { states: [], parts: [banner(report.title, sides(a, b), []), ...parts] };
}

const delta = (row: FileChange): number => (row.b ?? 0) - (row.a ?? 0);

function figure(row: FileChange): HTMLElement {
  const side = (count: number | null) => (count === null ? "none" : bytes(count, "estimated"));
  return h("div", { class: "figure" }, h("h3", {}, `${MOMENTS[row.name] ?? row.name}${row.method ? `, ${shorten(plain(row.method), 40)}` : ""}`),
    h("p", { class: "value" }, change(delta(row))), h("p", { class: "parts" }, side(row.a), " → ", side(row.b)));
}

function columns(): Column<FileChange>[] {
  const source = (row: FileChange) => (row.what.startsWith("estimate") ? "estimated" : "counted");
  const side = (row: FileChange, count: number | null) => count === null ? "none" : row.unit ? bytes(count, source(row)) : digits(count);
  return [
    { label: "Method", value: (row) => plain(row.method ?? ""), cell: (row) => shorten(plain(row.method ?? "-"), 40) },
    { label: "What", value: (row) => plain(row.what.replaceAll("_", " ")) },
    { label: "Name", value: (row) => plain(row.name), cell: (row) => shorten(plain(row.name.replace("delegate:", "")), 70) || "-" },
    { label: "a", value: (row) => row.a ?? -1, cell: (row) => side(row, row.a) },
    { label: "b", value: (row) => row.b ?? -1, cell: (row) => side(row, row.b) },
    { label: "Change", title: "Sort by the size of the change: bytes first", value: (row) => (row.unit ? 1e15 : 0) + Math.abs(delta(row)), cell: (row) => row.unit ? change(delta(row)) : `${delta(row) > 0 ? "+" : ""}${digits(delta(row))}` },
  ];
}
