// What is live at the chosen moment: by owner and category, and block by block.

import { ownerColor } from "../colors";
import { h, replace } from "../dom";
import { categoryName, ownerName, phaseName, plain, shorten } from "../names";
import type { State } from "../state";
import { table, type Column } from "../table";
import { bytes, exactSize, time } from "../units";

interface Group { key: number; file: boolean; bytes: number; place: number; count: number; begin: number }

export function blocksAt(state: State): HTMLElement {
  const holder = h("div", { class: "blocks", id: "blocks", tabindex: "-1", "aria-live": "polite" });
  const draw = () => replace(holder, ...content(state));
  state.onMove(draw);
  draw();
  return holder;
}

function content(state: State): Node[] {
  const { report, sample } = state;
  const stamp = report.samples.stamps[sample]!;
  const span = report.spans.findLast((one) => one.begin <= stamp && stamp <= one.end);
  const groups = live(state, stamp);
  const listed = groups.filter((one) => report.keys[one.key]!.counted).reduce((sum, one) => sum + one.bytes * one.count, 0);
  const all = report.samples.series.filter((one) => report.keys[one.key]!.counted).reduce((sum, one) => sum + one.values[sample]!, 0);
  const columns: Column<Group>[] = [
    { label: "Bytes", value: (row) => row.bytes * row.count, cell: (row) => bytes(row.bytes * row.count) },
    { label: "Blocks", value: (row) => row.count, cell: (row) => row.count === 1 ? "1" : `${row.count} of ${exactSize(row.bytes)}` },
    { label: "Owner", value: (row) => ownerName(report.keys[row.key]!.owner), cell: (row) => h("span", { class: "owner" }, h("i", { class: row.file ? "file" : "", style: `background-color:${ownerColor(report.keys[row.key]!.owner)}` }), shorten(plain(report.keys[row.key]!.instance ?? ownerName(report.keys[row.key]!.owner)))) },
    { label: "Category", value: (row) => categoryName(report.keys[row.key]!.category) + (row.file ? " (file)" : ""), cell: (row) => h("span", { class: "owner" }, categoryName(report.keys[row.key]!.category) + (row.file ? " (file)" : "")) },
    { label: "Asked for in", value: (row) => report.blocks.places[row.place]!.map(plain).join(" › "), cell: (row) => shorten(report.blocks.places[row.place]!.map((part) => shorten(plain(part), 60)).join(" › "), 150) },
  ];
  const place = span ? phaseName(report.summary.phases[span.phase]!) : "outside of phases";
  return [
    h("h3", {}, "Live at ", time(report.samples.times_ns[sample]!), `, ${place}: `, h("span", { id: "live-total" }, bytes(all))),
    table(groups, columns, { label: "blocks live at the chosen moment", sort: 0, filter: true, most: 12 }),
    ...(all - listed > 0 ? [h("p", { class: "note" }, "and smaller blocks of together ", bytes(all - listed), ".")] : []),
  ];
}

function live(state: State, stamp: number): Group[] {
  const { begin, end, bytes: sizes, key, file, place } = state.report.blocks;
  const found = new Map<string, Group>();
  for (let row = 0; row < begin.length; row++) {
    if (begin[row]! > stamp || (end[row]! !== -1 && end[row]! <= stamp)) continue;
    const id = `${sizes[row]} ${key[row]} ${place[row]} ${file[row]}`;
    const group = found.get(id);
    if (group) group.count++;
    else found.set(id, { key: key[row]!, file: file[row] === 1, bytes: sizes[row]!, place: place[row]!, count: 1, begin: begin[row]! });
  }
  return [...found.values()];
}
