import type { Diff } from "../data";
import { h } from "../dom";
import { categoryName, ownerName, phaseName, plain, shorten } from "../names";
import { nothing, section } from "../sections/section";
import { table, type Column } from "../table";
import { bytes, change } from "../units";
import { total } from "./verdict";

interface Changed { delta_bytes: number }

/** Every level below owners and categories; what is the same in both runs is not listed. */
export function details(diff: Diff): HTMLElement {
  const tables = [
    ...level("Delegate instances", diff.instances, [
      { label: "Instance", value: (row) => plain(row.instance) }, { label: "Moment", value: (row) => row.at },
      count("a", (row) => total(row.a)), count("b", (row) => total(row.b))]),
    ...level("Operators inside delegates", diff.operators, [
      { label: "Operator", value: (row) => plain(row.operator), cell: (row) => h("code", {}, shorten(plain(row.operator), 60)) },
      { label: "Owner", value: (row) => ownerName(row.owner) }, { label: "Category", value: (row) => categoryName(row.category) },
      { label: "Moment", value: (row) => row.at }, count("a", (row) => total(row.a)), count("b", (row) => total(row.b))]),
    ...level(`Blocks (${diff.blocks_compared} compared)`, diff.blocks, [
      { label: "Block of", value: (row) => plain(row.operator ?? `${ownerName(row.owner)} ${categoryName(row.category)}`) + (row.file ? " (file)" : "") },
      { label: "Moment", value: (row) => row.at }, count("Each", (row) => row.requested_bytes),
      { label: "In a", value: (row) => row.a_count }, { label: "In b", value: (row) => row.b_count }]),
    ...level("Arenas", diff.arenas, [
      { label: "Arena", value: (row) => plain(row.name) }, { label: "Method", value: (row) => plain(row.method ?? "-") },
      count("a", (row) => row.a_bytes), count("b", (row) => row.b_bytes)]),
    ...level("Phases", diff.phases, [
      { label: "Phase", value: (row) => phaseName(row) }, count("Peak in a", (row) => row.a_peak_bytes), count("Peak in b", (row) => row.b_peak_bytes),
      { label: "Allocations", words: true, value: (row) => (row.b_allocations ?? 0) - (row.a_allocations ?? 0), cell: (row) => `${row.a_allocations ?? "none"} → ${row.b_allocations ?? "none"}` }]),
  ];
  return section("details", "Details", "", ...(tables.length ? tables : [nothing("Nothing else differs.")]), ...beside(diff));
}

function level<R extends Changed>(title: string, rows: R[], columns: Column<R>[]): HTMLElement[] {
  if (rows.length === 0) return [];
  const all: Column<R>[] = [...columns, { label: "Change", value: (row) => Math.abs(row.delta_bytes), cell: (row) => change(row.delta_bytes), title: "Sort by the size of the change" }];
  return [h("h3", {}, title), table(rows, all, { label: title, sort: all.length - 1, filter: rows.length > 10, most: 12 })];
}

function count<R>(label: string, value: (row: R) => number | null, source = "counted"): Column<R> {
  return { label, value: (row) => value(row) ?? -1, cell: (row) => { const found = value(row); return found === null ? "none" : bytes(found, source); } };
}

function beside(diff: Diff): HTMLElement[] {
  if (diff.beside.length === 0) return [];
  const source = (what: string) => (what.startsWith("RSS") ? "measured" : "counted");
  const side = (what: string, found: number | null) => (found === null ? "none" : bytes(found, source(what)));
  const columns: Column<Diff["beside"][number]>[] = [
    { label: "Beside", value: (row) => plain(row.what.replace("inputs_outputs", "inputs, outputs")) },
    { label: "a", value: (row) => row.a_bytes ?? -1, cell: (row) => side(row.what, row.a_bytes) },
    { label: "b", value: (row) => row.b_bytes ?? -1, cell: (row) => side(row.what, row.b_bytes) },
  ];
  return [h("h3", {}, "Beside: measured, or the host's; no part of the change"), table(diff.beside, columns, { label: "beside" })];
}
