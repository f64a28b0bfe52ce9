import { scaleLinear } from "d3-scale";
import type { Label, NamedScope, Report, ToldSeries } from "../data";
import { ownerColor } from "../colors";
import { h, put, s } from "../dom";
import { word } from "../explain";
import { categoryName, ownerName, plain, shorten } from "../names";
import type { State } from "../state";
import { sampleAt } from "../state";
import { table, type Column } from "../table";
import { hideTooltip, showTooltip } from "../tooltip";
import { bytes, digits, size, time } from "../units";
import { section } from "./section";

const HEIGHT = 84;
const MARGIN = { left: 74, right: 14, top: 8, bottom: 6 };

/** What the program said of itself; no section where it said nothing. */
export function told(state: State): HTMLElement | null {
  const { told: series, summary } = state.report;
  const { named_scopes: scopes, device_memory: devices, labels } = summary;
  if (series.length + scopes.length + devices.length + labels.length === 0) return null;
  const lines = (kind: string) => series.filter((one) => one.kind === kind).map((one) => line(state, one));
  const [ofDevices, counters] = [lines("device"), lines("counter")];
  const sources = [...new Set(summary.counters.map((counter) => counter.source).filter(Boolean))];
  return section("told", "Told by the program and by sources", "Memory of devices, counters, scopes and labels: they stand beside what is counted and add to no total.",
    ...(devices.length ? [h("h3", {}, "Memory of devices"), deviceTable(state.report), ...ofDevices] : []),
    ...(counters.length ? [h("h3", {}, "Counters"), ...sources.map((one) => h("p", { class: "note" }, "Sampled: ", shorten(plain(one), 400))), ...counters] : []),
    ...(scopes.length ? [h("h3", {}, "Scopes that it named"), scopeTable(scopes)] : []),
    ...(labels.length ? [h("h3", {}, "Labels"), labelTable(labels)] : []));
}

function count<R>(label: string, value: (row: R) => number | null): Column<R> {
  return { label, value: (row) => value(row) ?? -1, cell: (row) => { const found = value(row); return found === null ? "-" : bytes(found); } };
}

function owned(owner: string): HTMLElement {
  return h("span", { class: "owner" }, h("i", { style: `background-color:${ownerColor(owner)}` }), word(owner, ownerName(owner)));
}

function deviceTable(report: Report): HTMLElement {
  type Row = Report["summary"]["device_memory"][number];
  const columns: Column<Row>[] = [
    { label: "Memory", value: (row) => row.memory, cell: (row) => plain(row.memory.replaceAll("_", " ")) },
    { label: "Heap", value: (row) => plain(row.name), cell: (row) => shorten(plain(row.name)) },
    { label: "Owner", value: (row) => ownerName(row.owner), cell: (row) => owned(row.owner) },
    { label: "Category", value: (row) => categoryName(row.category) },
    count("Peak of load", (row) => row.load_peak_bytes), count("Peak of inference", (row) => row.inference_peak_bytes),
    count("Steady", (row) => row.steady_bytes), count("At the end", (row) => row.live_end_bytes),
    { label: "Allocations", value: (row) => row.allocations },
  ];
  return table(report.summary.device_memory, columns, { label: "memory of devices", most: 20 });
}

function scopeTable(rows: NamedScope[]): HTMLElement {
  const columns: Column<NamedScope>[] = [
    { label: "Scope", value: (row) => plain(row.name), cell: (row) => shorten(plain(row.name), 80) },
    { label: "Entered", value: (row) => row.entered }, count("Allocated", (row) => row.allocated_bytes),
    { label: "Allocations", value: (row) => row.allocations }, count("Most live", (row) => row.peak_bytes), count("Live at the end", (row) => row.live_end_bytes),
  ];
  return table(rows, columns, { label: "named scopes", sort: 2, most: 20, filter: rows.length > 12 });
}

function labelTable(rows: Label[]): HTMLElement {
  const columns: Column<Label>[] = [
    { label: "Label", value: (row) => plain(row.name), cell: (row) => shorten(plain(row.name)) },
    { label: "Owner", value: (row) => ownerName(row.owner), cell: (row) => owned(row.owner) },
    { label: "Category", value: (row) => categoryName(row.category) }, { label: "Regions", value: (row) => row.regions },
    count("Most", (row) => row.peak_bytes),
  ];
  return table(rows, columns, { label: "labels", sort: 4, most: 20, filter: rows.length > 12 });
}

const shown = (one: ToldSeries, value: number): string => (one.unit === "bytes" ? size(value) : digits(value));

/** One series over the time of the run, with its least and most; hover to read. */
function line(state: State, one: ToldSeries): HTMLElement {
  const holder = h("div", { class: "chart told", "data-series": plain(one.name).slice(0, 200) });
  const source = state.report.summary.counters.find((counter) => one.kind === "counter" && counter.name === one.name)?.source ?? "";
  const name = shorten(plain(one.name), 80) + (source ? ", sampled" : "");
  let width = 900;
  const draw = () => {
    const { samples } = state.report;
    const times = [...one.times_ns, samples.times_ns[0] ?? 0, samples.times_ns.at(-1) ?? 0];
    const [low, high] = [Math.min(0, ...one.values), Math.max(1, ...one.values)];
    const x = scaleLinear([Math.min(...times), Math.max(...times, 1)], [MARGIN.left, width - MARGIN.right]);
    const y = scaleLinear([low, high], [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const end = x.range()[1]!;
    const path = one.values.map((value, index) => `${index ? "H" : "M"}${x(one.times_ns[index]!).toFixed(1)}${index ? "V" : ","}${y(value).toFixed(1)}`).join("");
    const most = Math.max(...one.values);
    const picture = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${plain(one.name)}: ${shown(one, Math.min(...one.values))} to ${shown(one, most)}` });
    for (const tick of [low, high]) put(picture, s("line", { x1: MARGIN.left, x2: end, y1: y(tick), y2: y(tick), class: "grid" }), s("text", { x: MARGIN.left - 8, y: y(tick) + 4, "text-anchor": "end" }, shown(one, tick)));
    put(picture, s("path", { d: `${path}H${end.toFixed(1)}`, class: source ? "sampled" : one.kind }), s("text", { x: MARGIN.left + 6, y: MARGIN.top + 12, class: "band-name" }, name));
    holder.replaceChildren(picture);
    holder.onpointermove = (event) => {
      const at = sampleAt(one.times_ns, x.invert(event.clientX - holder.getBoundingClientRect().left));
      showTooltip(event, h("b", {}, shown(one, one.values[at]!)), ` from ${time(one.times_ns[at]!)} on`);
    };
  };
  holder.addEventListener("pointerleave", hideTooltip);
  state.onRedraw(draw);
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry!.contentRect.width);
    if (now > 0 && now !== width) { width = now; draw(); }
  }).observe(holder);
  draw();
  return holder;
}
