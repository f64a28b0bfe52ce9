import type { Delegate } from "../data";
import { ownerColor } from "../colors";
import { h } from "../dom";
import { ownerName, plain, shorten } from "../names";
import type { State } from "../state";
import { table, type Column } from "../table";
import { bytes } from "../units";
import { nothing, section } from "./section";

function sharers(names: string[]): Node | string {
  if (names.length === 0) return "-";
  const all = names.map(plain).join(", ");
  return h("span", { title: all.slice(0, 2000) }, names.length > 2 ? `${names.length} others` : shorten(all, 60));
}

export function delegates(state: State): HTMLElement {
  const rows = state.report.summary.delegates;
  if (rows.length === 0) return section("delegates", "Delegates", "", nothing("No delegate was entered."));
  const size = (label: string, title: string, value: (row: Delegate) => number): Column<Delegate> =>
    ({ label, title, value, cell: (row) => value(row) ? bytes(value(row)) : "-" });
  const columns: Column<Delegate>[] = [
    { label: "Delegate", value: (row) => `${ownerName(`delegate:${row.backend}`)}[${row.instance}]`, cell: (row) => h("span", { class: "owner" }, h("i", { style: `background-color:${ownerColor(`delegate:${row.backend}`)}` }), `${ownerName(`delegate:${row.backend}`)}[${row.instance}]`) },
    { label: "Method", value: (row) => plain(row.method), cell: (row) => shorten(plain(row.method), 32) },
    size("Blob", "Bytes of the file that it is handed", (row) => row.blob_bytes),
    { label: "Released", value: (row) => row.blob_released, title: "When the blob is given back" },
    size("Named data", "Weights by name, beside the blob", (row) => row.named_data_bytes),
    size("Init peak", "Its own blocks at their most, during init", (row) => row.init_peak_bytes),
    size("After init", "Live after init", (row) => row.live_after_init_bytes),
    size("First execute", "What the first inference adds", (row) => row.first_execute_growth_bytes),
    size("Steady", "Live at the end of the last inference", (row) => row.steady_bytes),
    { label: "Allocations", title: "In executes after the first", value: (row) => row.execute_allocations },
    { label: "Shares with", words: true, value: (row) => row.shared_with.length, cell: (row) => sharers(row.shared_with) },
  ];
  return section("delegates", "Delegates", "One row per instance, in the order of the file.", table(rows, columns, { label: "delegates", filter: rows.length > 8, most: 50 }));
}
