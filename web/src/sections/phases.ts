import { h } from "../dom";
import { phaseName } from "../names";
import type { State } from "../state";
import { table, type Column } from "../table";
import { bytes, time } from "../units";
import { total } from "./verdict";
import { nothing, section } from "./section";

export function phases(state: State): HTMLElement {
  const rows = state.report.summary.phases.map((phase, index) => ({ phase, index }));
  type Row = (typeof rows)[number];
  if (rows.length === 0) return section("phases", "Phases", "", nothing("No phase was seen."));
  const rss = (row: Row) => row.phase.rss?.peak_bytes ?? row.phase.rss?.end_bytes ?? 0;
  const columns: Column<Row>[] = [
    { label: "Phase", value: (row) => phaseName(row.phase), cell: (row) => h("span", {}, phaseName(row.phase, 40), row.phase.failed ? h("b", { class: "failed" }, " failed") : null) },
    { label: "Start", value: (row) => row.phase.start_ns, cell: (row) => time(row.phase.start_ns) },
    { label: "Takes", value: (row) => row.phase.end_ns - row.phase.start_ns, cell: (row) => time(row.phase.end_ns - row.phase.start_ns) },
    { label: "Peak", value: (row) => total(row.phase.peak), cell: (row) => bytes(total(row.phase.peak)) },
    { label: "Live at end", value: (row) => total(row.phase.live_end), cell: (row) => bytes(total(row.phase.live_end)) },
    { label: "Allocated", value: (row) => row.phase.allocated_bytes, cell: (row) => bytes(row.phase.allocated_bytes) },
    { label: "Allocations", value: (row) => row.phase.allocations },
    { label: "Process private", title: "Peak of the whole process's private bytes", value: (row) => row.phase.process_private_bytes, cell: (row) => bytes(row.phase.process_private_bytes) },
    { label: "RSS high water", value: rss, cell: (row) => row.phase.rss ? bytes(rss(row), "measured") : "-" },
  ];
  return section("phases", "Phases", "", table(rows, columns, { label: "phases", most: 30 }));
}
