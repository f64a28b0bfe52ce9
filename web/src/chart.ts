// The timeline: live bytes as stacked areas over phases, with RSS beside, to zoom, read and click.

import { brushX, type D3BrushEvent } from "d3-brush";
import { scaleLinear, type ScaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { area, curveLinear, curveStepAfter, line } from "d3-shape";
import { choices, h, put, replace, s } from "./dom";
import { layers, totals, type Grouping, type Layer } from "./layers";
import { momentName, phaseLabel, phaseName } from "./names";
import { sampleAt, type State } from "./state";
import { hideTooltip, showTooltip } from "./tooltip";
import { bytes, niceBytes, size, time, timeTicks } from "./units";

type Axis = "time" | "events";
type Scale = ScaleLinear<number, number>;

const HEIGHT = 340;
const MARGIN = { top: 26, right: 14, bottom: 30, left: 74 };
const GROUPINGS = [["owner", "owner"], ["category", "category"], ["instance", "delegate instance"], ["operator", "operator"]] as const;

/** What stacks, scales and zooms one chart, or two that are looked at together. */
export function controls(charts: Chart[]): HTMLElement {
  const set = (change: Partial<Options>) => {
    for (const chart of charts) chart.set(change);
    // One scale for both: the first was drawn before the second knew of the change.
    if (charts.length > 1) charts[0]!.redraw();
  };
  const states = charts.map((chart) => chart.state);
  const names = [...new Set(states.flatMap((state) => state.report.marks.map((mark) => mark.name)))];
  const go = (name: string) => { for (const state of states) state.moveToMark(name); };
  return h("div", { class: "controls" },
    choices<Grouping>("Stack by", GROUPINGS.filter(([value]) => value !== "operator" || states.every((state) => state.report.samples.operators.length > 0)), "owner", (value) => set({ grouping: value })),
    choices<Axis>("Axis", [["time", "time"], ["events", "events"]], "time", (value) => set({ axis: value })),
    toggle("host", false, (on) => set({ host: on })),
    states.some((state) => state.report.rss.length) ? toggle("RSS", charts[0]!.rss, (on) => set({ rss: on })) : null,
    h("span", { class: "choices", role: "group", "aria-label": "Go to" },
      ...names.map((name) => h("button", { type: "button", "data-mark": name, click: () => go(name) }, momentName(name)))),
    h("button", { type: "button", class: "reset", click: () => { for (const chart of charts) chart.zoomOut(); } }, "Whole run"));
}

function toggle(name: string, on: boolean, set: (on: boolean) => void): HTMLElement {
  const box = h("input", { type: "checkbox", checked: on });
  box.addEventListener("change", () => set(box.checked));
  return h("label", { class: "toggle" }, box, name);
}

interface Options { grouping: Grouping; axis: Axis; host: boolean; rss: boolean }

export class Chart {
  readonly element: HTMLElement;
  readonly legend = h("ul", { class: "legend" });
  private options: Options = { grouping: "owner", axis: "time", host: false, rss: false };
  private shown: Layer[] = [];
  private tops: number[] = [];
  private view: [number, number];
  private width = 900;
  private x: Scale = scaleLinear();
  private y: Scale = scaleLinear();
  private cursor: SVGGElement | null = null;

  private partner: Chart | null = null;

  constructor(readonly state: State, private readonly id = "timeline-chart") {
    this.element = h("div", { class: "chart", tabindex: "0", role: "application", id });
    const { rss } = state.report;
    const most = Math.max(...totals(state.report).all, 1);
    // In a Python process RSS is many times what is counted, and would press it flat.
    this.options.rss = rss.length > 0 && Math.max(...rss.map((row) => row.rss_bytes)) < 4 * most;
    this.stack();
    this.view = this.whole();
    state.onMove(() => this.move());
    state.onRedraw(() => this.draw());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("pointerleave", hideTooltip);
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry!.contentRect.width);
      if (width > 0 && width !== this.width) { this.width = width; this.draw(); }
    }).observe(this.element);
    this.draw();
  }

  get rss(): boolean { return this.options.rss; }

  /** Both charts on one scale: that of the larger run, zoomed in or not. */
  pairWith(other: Chart): void {
    this.partner = other;
    other.partner = this;
    const rss = this.options.rss && other.options.rss;
    for (const chart of [this, other]) chart.set({ rss });
    this.redraw();
  }

  redraw(): void { this.draw(); }

  set(change: Partial<Options>): void {
    this.options = { ...this.options, ...change };
    if (change.axis) this.view = this.whole();
    this.stack();
    this.draw();
  }

  zoomOut(): void { this.view = this.whole(); this.draw(); }

  // Positions on the axis: ns, or the place among the samples.

  private whole(): [number, number] {
    const { times_ns: times } = this.state.report.samples;
    const [first, last] = this.options.axis === "events" ? [0, times.length - 1] : [times[0]!, times.at(-1)!];
    // What is live at the end, as in a run that was killed, has a width to be seen by.
    const beyond = (this.tops.at(-1) ?? 0) > 0 ? 0.03 * (last - first) : 0;
    return [first, Math.max(last + beyond, first + 1)];
  }

  private at(sample: number): number {
    return this.options.axis === "events" ? sample : this.state.report.samples.times_ns[sample]!;
  }

  private atStamp(stamp: number): number { return this.at(sampleAt(this.state.report.samples.stamps, stamp)); }

  private sampleNear(pixel: number): number {
    const position = this.x.invert(pixel);
    if (this.options.axis === "events") return Math.min(Math.max(Math.round(position), 0), this.tops.length - 1);
    const { times_ns: times } = this.state.report.samples;
    return sampleAt(times, position);
  }

  private stack(): void {
    this.shown = layers(this.state.report, this.options.grouping, this.options.host);
    this.tops = this.state.report.samples.stamps.map((_, index) => this.shown.reduce((sum, layer) => sum + layer.values[index]!, 0));
  }

  private draw(): void {
    const { width } = this;
    this.x = scaleLinear(this.view, [MARGIN.left, width - MARGIN.right]);
    const top = this.partner ? Math.max(this.highest(this.whole()), this.partner.highest(this.partner.whole())) : this.highest(this.view);
    this.y = scaleLinear([0, top * 1.04], [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const clip = s("g", { "clip-path": `url(#${this.id}-plot)` });
    const picture = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": this.describe() },
      s("defs", {}, s("clipPath", { id: `${this.id}-plot` }, s("rect", { x: MARGIN.left, y: 0, width: Math.max(width - MARGIN.left - MARGIN.right, 0), height: HEIGHT })),
        s("pattern", { id: `${this.id}-hatch`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch" }))));
    put(clip, this.bands(), ...this.areas(), this.rssLines());
    this.cursor = s("g", { class: "cursor" });
    put(picture, this.axes(), clip, this.peaks(), this.cursor, this.brush());
    replace(this.element, picture);
    this.drawLegend();
    this.move();
  }

  private describe(): string {
    const most = this.tops.indexOf(Math.max(...this.tops));
    return `Live bytes over ${this.options.axis}; at most ${size(this.tops[most]!)} at ${time(this.state.report.samples.times_ns[most]!)}. Arrow keys move, Enter lists the blocks.`;
  }

  /** The most that is drawn in a part of the axis. */
  private highest([from, to]: [number, number]): number {
    const count = this.tops.length;
    let first = 0;
    let last = count - 1;
    while (first < count - 1 && this.at(first + 1) <= from) first++;
    while (last > first && this.at(last) > to) last--;
    let top = 1;
    for (let index = first; index <= last; index++) top = Math.max(top, this.tops[index]!);
    if (this.options.rss) for (const row of this.state.report.rss) top = Math.max(top, row.rss_bytes, row.high_water_bytes);
    return top;
  }

  private areas(): Node[] {
    const base = this.tops.map(() => 0);
    const last = base.length - 1;
    // The last value holds to the end of the axis.
    const indices = [...base.keys(), base.length];
    const place = (i: number) => this.x(i < base.length ? this.at(i) : Math.max(this.whole()[1], this.at(base.length - 1)));
    return this.shown.flatMap((layer) => {
      const lower = [...base];
      layer.values.forEach((value, index) => { base[index]! += value; });
      const upper = [...base];
      const shape = area<number>(place, (i) => this.y(lower[Math.min(i, last)]!), (i) => this.y(upper[Math.min(i, last)]!)).curve(curveStepAfter)(indices) ?? "";
      const part = s("path", { d: shape, fill: layer.color, class: "layer", "data-layer": layer.name });
      return layer.file ? [part, s("path", { d: shape, fill: `url(#${this.id}-hatch)` })] : [part];
    });
  }

  private bands(): Node {
    const group = s("g", { class: "bands" });
    const { spans, summary } = this.state.report;
    spans.forEach((span, index) => {
      const phase = summary.phases[span.phase]!;
      const [left, right] = [this.x(this.atStamp(span.begin)), this.x(this.atStamp(span.end))];
      const width = Math.max(right - left, 1);
      put(group, s("rect", { x: left, y: MARGIN.top - 20, width, height: HEIGHT - MARGIN.bottom - MARGIN.top + 20, class: `band ${phase.kind} ${index % 2 ? "odd" : ""}` }));
      const name = phaseLabel(phase, Math.floor((width - 8) / 6.4));
      if (name) put(group, s("text", { x: Math.max(left, MARGIN.left) + 5, y: MARGIN.top - 8, class: "band-name" }, name));
    });
    return group;
  }

  private rssLines(): Node {
    const group = s("g");
    const { rss } = this.state.report;
    if (!this.options.rss || rss.length === 0) return group;
    const points = rss.map((row) => [this.x(this.position(row)), this.y(row.rss_bytes)] as [number, number]);
    put(group, s("path", { d: line().curve(curveLinear)(points) ?? "", class: "rss" }));
    for (const [x, y] of points) put(group, s("circle", { cx: x, cy: y, r: 2, class: "rss-point" }));
    rss.forEach((row, index) => {
      if (row.high_water_bytes > 0 && index > 0)
        put(group, s("line", { x1: points[index - 1]![0], x2: points[index]![0], y1: this.y(row.high_water_bytes), y2: this.y(row.high_water_bytes), class: "high-water" }));
    });
    return group;
  }

  private position(row: { stamp: number; time_ns: number }): number {
    return this.options.axis === "time" ? row.time_ns : this.atStamp(row.stamp);
  }

  private axes(): Node {
    const group = s("g", { class: "axes" });
    for (const tick of niceBytes(this.y.domain()[1]!, 5)) {
      const y = this.y(tick);
      put(group, s("line", { x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y, class: "grid" }), s("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, size(tick)));
    }
    const ticks = this.x.ticks(Math.max(2, Math.floor(this.width / 130)));
    const texts = this.options.axis === "time" ? timeTicks(ticks) : ticks.map(String);
    ticks.forEach((tick, index) => put(group, s("text", { x: this.x(tick), y: HEIGHT - 10, "text-anchor": "middle" }, texts[index]!)));
    return group;
  }

  private peaks(): Node {
    const group = s("g", { class: "peaks", "clip-path": `url(#${this.id}-plot)` });
    for (const mark of this.state.report.marks) {
      if (mark.name === "steady") continue;
      const sample = sampleAt(this.state.report.samples.stamps, mark.stamp);
      const [x, y] = [this.x(this.at(sample)), this.y(this.tops[sample]!)];
      put(group, s("path", { d: `M${x},${y - 3}l-5,-9h10z`, class: "peak", "data-peak": mark.name }), s("title", {}, momentName(mark.name)));
    }
    return group;
  }

  /** d3's brush takes drags; a drag of no width is a click. */
  private brush(): SVGGElement {
    const group = s("g", { class: "brush" });
    const brush = brushX<unknown>().extent([[MARGIN.left, MARGIN.top - 20], [Math.max(this.width - MARGIN.right, MARGIN.left + 1), HEIGHT - MARGIN.bottom]]);
    brush.on("end", (event: D3BrushEvent<unknown>) => {
      const source = event.sourceEvent as MouseEvent | undefined;
      if (!source) return;
      const selection = event.selection as [number, number] | null;
      if (selection && selection[1] - selection[0] > 4) {
        this.view = [this.x.invert(selection[0]), this.x.invert(selection[1])];
        this.draw();
      } else {
        if (selection) select(group).call(brush.move, null);
        this.choose(this.sampleNear(this.pixel(source)));
      }
    });
    select(group).call(brush);
    group.addEventListener("pointermove", (event) => this.hover(event));
    group.addEventListener("dblclick", () => this.zoomOut());
    return group;
  }

  private pixel(event: { clientX: number }): number {
    return event.clientX - this.element.getBoundingClientRect().left;
  }

  private choose(sample: number): void { this.state.moveTo(this.state.report.samples.stamps[sample]!); }

  private hover(event: PointerEvent): void {
    const sample = this.sampleNear(this.pixel(event));
    const { report } = this.state;
    const stamp = report.samples.stamps[sample]!;
    const span = report.spans.findLast((one) => one.begin <= stamp && stamp <= one.end);
    const rows = this.shown.filter((layer) => layer.values[sample]! > 0).reverse();
    showTooltip(event,
      h("b", {}, size(this.tops[sample]!)), ` at ${time(report.samples.times_ns[sample]!)}`,
      h("div", { class: "muted" }, span ? phaseName(report.summary.phases[span.phase]!) : "outside of phases"),
      h("table", {}, ...rows.slice(0, 14).map((layer) => h("tr", {}, h("td", {}, h("i", { class: layer.file ? "file" : "", style: `background-color:${layer.color}` }), layer.name, layer.file ? " (file)" : ""), h("td", { class: "number" }, size(layer.values[sample]!))))));
  }

  private move(): void {
    if (!this.cursor) return;
    const sample = this.state.sample;
    const x = this.x(this.at(sample));
    const shown = x >= MARGIN.left - 1 && x <= this.width - MARGIN.right + 1;
    replace(this.cursor, shown ? s("line", { x1: x, x2: x, y1: MARGIN.top - 20, y2: HEIGHT - MARGIN.bottom }) : null,
      shown ? s("circle", { cx: x, cy: this.y(this.tops[sample]!), r: 4 }) : null);
  }

  private key(event: KeyboardEvent): void {
    const step = event.shiftKey ? 10 : 1;
    const moves: Record<string, number> = { ArrowLeft: -step, ArrowRight: step, Home: -Infinity, End: Infinity };
    const by = moves[event.key];
    if (by !== undefined) this.choose(Math.min(Math.max(this.state.sample + by, 0), this.tops.length - 1));
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0" || event.key === "Escape") this.zoomOut();
    else if (event.key === "Enter") document.querySelector<HTMLElement>("#blocks")?.focus();
    else return;
    event.preventDefault();
  }

  private zoom(factor: number): void {
    const [from, to] = this.whole();
    const half = ((this.view[1] - this.view[0]) * factor) / 2;
    const middle = this.at(this.state.sample);
    this.view = [Math.max(from, middle - half), Math.min(to, middle + half)];
    if (this.view[1] <= this.view[0]) this.view = [from, to];
    this.draw();
  }

  private drawLegend(): void {
    const sample = this.state.sample;
    const entries = [...this.shown].reverse().map((layer) => h("li", {}, h("i", { class: layer.file ? "file" : "", style: `background-color:${layer.color}` }), h("span", { class: "name" }, layer.name + (layer.file ? " (file)" : "")), bytes(layer.values[sample]!)));
    replace(this.legend, ...entries,
      this.options.rss ? h("li", {}, h("i", { class: "rss-mark" }), h("span", { class: "name" }, "RSS, at the edges of phases")) : null,
      this.options.rss ? h("li", {}, h("i", { class: "high-mark" }), h("span", { class: "name" }, "the kernel's high water")) : null);
    if (!this.listening) { this.listening = true; this.state.onMove(() => this.drawLegend()); }
  }

  private listening = false;
}
