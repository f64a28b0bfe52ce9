import type { DelegateOperator, InstructionBytes, PeakPart, SourceLine } from "../data";
import { ownerColor } from "../colors";
import { h } from "../dom";
import { categoryName, ownerName, plain, shorten } from "../names";
import type { State } from "../state";
import { table, type Column } from "../table";
import { bytes } from "../units";
import { nothing, section } from "./section";

export function operators(state: State): HTMLElement {
  const { instructions, peak_parts: parts, delegate_operators: inside } = state.report.summary;
  if (instructions.length + parts.length + inside.length === 0)
    return section("operators", "Operators", "", nothing("No instruction was seen: the program did not run, or its ExecuTorch has no event tracer."));
  return section("operators", "Operators", "What each instruction does to memory; with an ETRecord, the line of the model that it comes from.",
    parts.length ? h("h3", {}, "Held at the peaks, by the instruction that asked for it") : null,
    parts.length ? table(parts, held(parts), { label: "held at the peaks", sort: 3, most: 8, filter: parts.length > 8 }) : null,
    inside.length ? h("h3", {}, "Inside delegates, at the peak of inference") : null,
    inside.length ? table(inside, delegated(), { label: "operators inside delegates", sort: 4, most: 8, filter: inside.length > 8 }) : null,
    instructions.length ? h("h3", {}, "Instructions, in the first inference and in the later ones") : null,
    instructions.length ? table(instructions, all(instructions), { label: "instructions", filter: true, sort: peakOf(instructions), most: 12 }) : null);
}

function size<R>(label: string, title: string, value: (row: R) => number): Column<R> {
  return { label, title, value, cell: (row) => (value(row) ? bytes(value(row)) : "-") };
}

function code(text: string): HTMLElement {
  return h("code", { title: plain(text).slice(0, 2000) }, shorten(plain(text), 60));
}

function source(lines: SourceLine[]): string {
  const [line] = lines;
  return line ? plain(`${line.module ? `${line.module} ` : ""}${line.file.split("/").at(-1)}:${line.line} ${line.text}`) : "";
}

function sources<R extends { sources: SourceLine[] }>(rows: R[]): Column<R>[] {
  if (!rows.some((row) => row.sources.length > 0)) return [];
  return [{ label: "Source", value: (row) => source(row.sources), cell: (row) => shorten(source(row.sources), 90) || "-" }];
}

function methods<R extends { program: number; method: string }>(rows: R[]): Column<R>[] {
  if (new Set(rows.map((row) => `${row.program}/${row.method}`)).size < 2) return [];
  return [{ label: "Method", value: (row) => plain(row.method), cell: (row) => shorten(plain(row.method), 32) }];
}

function held(rows: PeakPart[]): Column<PeakPart>[] {
  return [
    { label: "Peak of", value: (row) => row.at },
    { label: "Instruction", value: (row) => row.instruction },
    { label: "Operator", value: (row) => plain(row.operator), cell: (row) => h("span", {}, code(row.instance ?? row.operator), row.running ? " (running)" : "") },
    size("Bytes", "Of what it asked for, live at the peak", (row) => row.bytes),
    { label: "Blocks", value: (row) => row.blocks },
    ...methods(rows), ...sources(rows),
  ];
}

function delegated(): Column<DelegateOperator>[] {
  return [
    { label: "Owner", value: (row) => ownerName(row.owner), cell: (row) => h("span", { class: "owner" }, h("i", { style: `background-color:${ownerColor(row.owner)}` }), ownerName(row.owner)) },
    { label: "Instance", value: (row) => plain(row.instance ?? "shared") },
    { label: "Operator", value: (row) => plain(row.operator), cell: (row) => code(row.operator) },
    { label: "Category", value: (row) => categoryName(row.category) },
    size("Bytes", "Live at the peak of inference", (row) => row.bytes),
    { label: "Blocks", value: (row) => row.blocks },
  ];
}

function all(rows: InstructionBytes[]): Column<InstructionBytes>[] {
  return [
    ...methods(rows),
    { label: "Instruction", value: (row) => row.instruction ?? -1, cell: (row) => (row.instruction === null ? "-" : String(row.instruction)) },
    { label: "Operator", value: (row) => plain(row.operator || (row.reason ?? "")), cell: (row) => (row.operator ? code(row.instance ?? row.operator) : plain((row.reason ?? "").replaceAll("_", " "))) },
    { label: "Inferences", value: (row) => row.at, cell: (row) => (row.at === "first" ? "first" : `${row.inferences} later`) },
    size("Before", "Live before it", (row) => row.live_before_bytes),
    size("At most", "The most that was live while it ran", (row) => row.peak_bytes),
    size("After", "Live after it", (row) => row.live_after_bytes),
    size("Allocated", "In all these inferences", (row) => row.allocated_bytes),
    { label: "Allocations", value: (row) => row.allocations },
    size("Freed", "In all these inferences", (row) => row.freed_bytes),
    size("Temp", "Asked of the temp allocator", (row) => row.temp_bytes),
    size("Planned in use", "Of planned memory, by the file", (row) => row.planned_live_bytes ?? 0),
    ...sources(rows),
  ];
}

/** The column that sorts at first: what was allocated. */
const peakOf = (rows: InstructionBytes[]): number => all(rows).findIndex((column) => column.label === "Allocated");
