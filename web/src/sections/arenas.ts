import { scaleLinear } from "d3-scale";
import type { Arena, PlanMap, Storage } from "../data";
import { choices, h, put, replace, s } from "../dom";
import { word } from "../explain";
import { ownerName, plain, shorten } from "../names";
import type { State } from "../state";
import { table, type Column } from "../table";
import { hideTooltip, showTooltip } from "../tooltip";
import { bytes, exactSize, niceBytes, size } from "../units";
import { nothing, section } from "./section";

const KINDS = ["input", "temporary", "output", "mutable"];
const MARGIN = { left: 74, right: 14, top: 58, bottom: 28 };
const HEIGHT = 340;

export function arenas(state: State): HTMLElement {
  const { summary, plans } = state.report;
  const planned = plans.filter((plan) => plan.storages.length > 0);
  if (summary.arenas.length === 0 && planned.length === 0) return section("arenas", "Arenas", "", nothing("No ExecuTorch allocator handed out memory."));
  const columns: Column<Arena>[] = [
    { label: "Arena", value: (row) => row.name, cell: (row) => word(row.name, plain(row.name)) },
    { label: "Method", value: (row) => plain(row.method ?? "shared"), cell: (row) => shorten(plain(row.method ?? "several"), 32) },
    { label: "Bytes", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
    { label: "Used at most", value: (row) => row.used_peak_bytes ?? used(planned, row) ?? 0, cell: (row) => { const count = row.used_peak_bytes ?? used(planned, row); return count === null ? "-" : bytes(count); } },
    { label: "Allocations", value: (row) => row.allocations },
    { label: "Users", words: true, value: (row) => row.users.length, cell: (row) => shorten(row.users.slice(0, 3).map((user) => `${user.instance ? plain(user.instance) : ownerName(user.owner)} ${size(user.bytes)}`).join(", "), 90) || "-" },
  ];
  return section("arenas", "Arenas",
    "Regions that ExecuTorch hands out from. They refine what is counted above and add to no total.",
    table(summary.arenas, columns, { label: "arenas", most: 20, filter: summary.arenas.length > 12 }),
    planned.length ? new Maps(state, planned).element : h("p", { class: "note" }, "No map of planned memory: the program's file is not there, or it plans none."));
}

/** The most bytes of a planned buffer that the plan has in use at once. */
function used(plans: PlanMap[], arena: Arena): number | null {
  const match = /^planned\[(\d+)\]$/.exec(arena.name);
  const plan = plans.find((one) => one.program === arena.program && one.method === arena.method);
  if (!match || !plan) return null;
  return Math.max(0, ...usage(plan, Number(match[1])));
}

/** Bytes of one buffer in use at each time, from before the first instruction to after the last. */
function usage(plan: PlanMap, memId: number): number[] {
  const changes = new Array<number>(plan.instructions.length + 3).fill(0);
  for (const one of plan.storages) if (one.mem_id === memId) { changes[one.first + 1]! += one.bytes; changes[one.last + 2]! -= one.bytes; }
  let sum = 0;
  return changes.slice(0, -1).map((change) => (sum += change));
}

class Maps {
  readonly element = h("div", { class: "maps" });
  private readonly holder = h("div", { class: "chart map", tabindex: "0", role: "application", "aria-label": "Planned memory; arrow keys go from tensor to tensor" });
  /** What the arrow keys stand on, in words. */
  private readonly reading = h("p", { class: "note reading", "aria-live": "polite" }, "");
  private chosen = -1;
  private readonly buffers: { plan: PlanMap; memId: number; bytes: number }[];
  private shown = 0;
  private width = 900;

  constructor(private readonly state: State, plans: PlanMap[]) {
    this.buffers = plans.flatMap((plan) => plan.buffers.filter(([memId]) => plan.storages.some((one) => one.mem_id === memId)).map(([memId, count]) => ({ plan, memId, bytes: count })));
    this.shown = this.buffers.reduce((best, one, index) => (one.bytes > this.buffers[best]!.bytes ? index : best), 0);
    put(this.element, h("h3", {}, "Planned memory: offset by lifetime"), this.picker(), this.holder, this.reading,
      h("ul", { class: "legend" }, ...KINDS.map((kind) => h("li", {}, h("i", { class: `storage ${kind}` }), h("span", { class: "name" }, kind))), h("li", {}, h("i", { class: "peak-mark" }), h("span", { class: "name" }, "instruction with most in use"))));
    this.holder.addEventListener("pointerleave", hideTooltip);
    this.holder.addEventListener("keydown", (event) => this.key(event));
    state.onRedraw(() => this.draw());
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry!.contentRect.width);
      if (width > 0 && width !== this.width) { this.width = width; this.draw(); }
    }).observe(this.holder);
    this.draw();
  }

  private picker(): HTMLElement | null {
    if (this.buffers.length < 2) return null;
    const names = this.buffers.map((one) => `${shorten(plain(one.plan.method), 30)} planned[${one.memId}]${this.state.report.summary.programs.length > 1 ? ` #${one.plan.program}` : ""}`);
    if (this.buffers.length <= 6) return choices("Buffer", names.map((name, index) => [String(index), name] as const), String(this.shown), (value) => this.show(Number(value)));
    const select = h("select", { "aria-label": "Buffer", change: (event: Event) => this.show(Number((event.target as HTMLSelectElement).value)) }, ...names.map((name, index) => h("option", { value: index }, name)));
    select.value = String(this.shown);
    return select;
  }

  private show(index: number): void { this.shown = index; this.choose(-1); }

  /** The tensors of the buffer that is shown, by when they come alive. */
  private tensors(): Storage[] {
    const { plan, memId } = this.buffers[this.shown]!;
    return plan.storages.filter((one) => one.mem_id === memId).sort((a, b) => a.first - b.first || a.offset - b.offset);
  }

  private key(event: KeyboardEvent): void {
    const count = this.tensors().length;
    const moves: Record<string, number> = { ArrowRight: this.chosen + 1, ArrowDown: this.chosen + 1, ArrowLeft: this.chosen - 1, ArrowUp: this.chosen - 1, Home: 0, End: count - 1 };
    const next = moves[event.key];
    if (next !== undefined) this.choose(Math.min(Math.max(next, 0), count - 1));
    else if (event.key === "Escape") this.choose(-1);
    else return;
    event.preventDefault();
  }

  private choose(index: number): void {
    this.chosen = index;
    const one = this.tensors()[index];
    const { plan } = this.buffers[this.shown]!;
    this.reading.replaceChildren();
    if (one) put(this.reading, h("b", {}, shorten(plain(one.label), 120)), " ", bytes(one.bytes), ` at ${exactSize(one.offset)}, ${one.kind}; ${when(plan, one.first)} to ${when(plan, one.last)}`);
    this.draw();
  }

  private draw(): void {
    const { plan, memId, bytes: total } = this.buffers[this.shown]!;
    const count = plan.instructions.length;
    const live = usage(plan, memId);
    const peak = live.indexOf(Math.max(...live)) - 1;
    const x = scaleLinear([-1, count + 1], [MARGIN.left, this.width - MARGIN.right]);
    const y = scaleLinear([0, Math.max(total, 1)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const top = scaleLinear([0, Math.max(...live, 1)], [MARGIN.top - 8, 14]);
    const picture = s("svg", { viewBox: `0 0 ${this.width} ${HEIGHT}`, width: this.width, height: HEIGHT, role: "img", "aria-label": `Planned memory of ${plain(plan.method)}: ${exactSize(total)}, at most ${exactSize(live[peak + 1]!)} in use at ${when(plan, peak)}` });
    const grid = s("g", { class: "axes" });
    for (const tick of niceBytes(total, 4)) put(grid, s("line", { x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y(tick), y2: y(tick), class: "grid" }), s("text", { x: MARGIN.left - 8, y: y(tick) + 4, "text-anchor": "end" }, size(tick)));
    for (const tick of x.ticks(Math.min(count, 10)).filter((one) => Number.isInteger(one) && one >= 0 && one < count)) put(grid, s("text", { x: (x(tick) + x(tick + 1)) / 2, y: HEIGHT - 10, "text-anchor": "middle" }, String(tick)));
    put(grid, s("text", { x: MARGIN.left - 8, y: MARGIN.top - 24, "text-anchor": "end" }, "in use"), s("text", { x: this.width - MARGIN.right, y: HEIGHT - 10, "text-anchor": "end" }, "instruction"));
    put(picture, grid, s("rect", { x: x(peak), y: 10, width: x(peak + 1) - x(peak), height: HEIGHT - MARGIN.bottom - 10, class: "peak-column" }));
    const steps = live.map((value, index) => `H${x(index - 1).toFixed(1)}V${top(value).toFixed(1)}`).join("");
    put(picture, s("path", { d: `M${x(-1)},${MARGIN.top - 8}${steps}H${x(count + 1)}V${MARGIN.top - 8}Z`, class: "usage" }));
    for (const one of plan.storages) if (one.mem_id === memId) put(picture, this.storage(plan, one, x, y));
    const chosen = this.tensors()[this.chosen];
    if (chosen) put(picture, s("rect", { x: x(chosen.first), y: y(chosen.offset + chosen.bytes), width: x(chosen.last + 1) - x(chosen.first), height: Math.max(y(chosen.offset) - y(chosen.offset + chosen.bytes), 1), class: "chosen" }));
    replace(this.holder, picture);
  }

  private storage(plan: PlanMap, one: Storage, x: (value: number) => number, y: (value: number) => number): Node {
    const [left, right] = [x(one.first), x(one.last + 1)];
    const [low, high] = [y(one.offset + one.bytes), y(one.offset)];
    const group = s("g", { pointermove: (event: PointerEvent) => showTooltip(event, h("b", { class: "wrap" }, shorten(plain(one.label), 200)), h("div", {}, bytes(one.bytes), ` at ${exactSize(one.offset)} · ${one.kind}`), h("div", { class: "muted" }, `${when(plan, one.first)} to ${when(plan, one.last)}`), one.source ? h("div", { class: "muted" }, shorten(plain(`${one.source.module} ${one.source.file}:${one.source.line}`), 120)) : "") },
      s("rect", { x: left, y: low, width: Math.max(right - left - 0.5, 0.5), height: Math.max(high - low, 0.75), class: `storage ${one.kind}` }));
    if (right - left > 70 && high - low > 14) put(group, s("text", { x: left + 6, y: low + 13, class: "storage-name" }, shorten(plain(one.label), Math.floor((right - left) / 6.8))));
    return group;
  }
}

function when(plan: PlanMap, time: number): string {
  if (time < 0) return "before the first instruction";
  return time >= plan.instructions.length ? "after the last instruction" : `${time} ${shorten(plain(plan.instructions[time]!), 60)}`;
}
