import type { InstructionRow } from "../data";
import { h } from "../dom";
import { plain, shorten } from "../names";
import type { State } from "../state";
import { table, type Column } from "../table";
import { bytes } from "../units";
import { nothing, section } from "./section";

export function operators(state: State): HTMLElement {
  const rows = state.report.instructions;
  if (rows.length === 0) return section("operators", "Operators", "", nothing("No instruction was seen: the program did not run, or its ExecuTorch has no event tracer."));
  const methods = new Set(rows.map((row) => `${row.program}/${row.method}`)).size > 1;
  const size = (label: string, title: string, value: (row: InstructionRow) => number): Column<InstructionRow> => ({ label, title, value, cell: (row) => value(row) ? bytes(value(row)) : "-" });
  const columns: Column<InstructionRow>[] = [
    ...(methods ? [{ label: "Method", value: (row: InstructionRow) => plain(row.method), cell: (row: InstructionRow) => shorten(plain(row.method), 32) }] : []),
    { label: "Instruction", value: (row) => row.index },
    { label: "Operator", value: (row) => plain(row.name), cell: (row) => h("code", { title: plain(row.name).slice(0, 2000) }, shorten(plain(row.name), 60)) },
    { label: "Runs", value: (row) => row.executions },
    size("Live at inference peak", "Of what it allocated, live at the peak of inference", (row) => row.live_at_peak_bytes),
    size("Planned, at the plan's peak", "Of what it writes into planned memory, in use when that is fullest", (row) => row.planned_at_peak_bytes),
    size("Planned", "What it writes into planned memory", (row) => row.planned_bytes),
    size("Allocated", "In all its runs", (row) => row.allocated_bytes),
    { label: "Allocations", value: (row) => row.allocations },
  ];
  const live = columns.findIndex((column) => column.label === "Live at inference peak");
  return section("operators", "Operators", "What each instruction allocated, and what it put into planned memory.", table(rows, columns, { label: "operators", filter: true, sort: live, most: 15 }));
}
