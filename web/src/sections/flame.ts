import { hierarchy, partition, type HierarchyRectangularNode } from "d3-hierarchy";
import type { Report, StackRow } from "../data";
import { ownerColor } from "../colors";
import { choices, h, replace } from "../dom";
import { ownerName, plain } from "../names";
import type { State } from "../state";
import { hideTooltip, showTooltip } from "../tooltip";
import { bytes, digits, exactSize, percent, size } from "../units";
import { nothing, section } from "./section";

type What = "inference" | "load" | "steady" | "allocated";
type How = "scope" | "native";
interface Tree { name: string; value: number; blocks: number; owners: Set<string>; children: Map<string, Tree> }
type Box = HierarchyRectangularNode<Tree>;

const ROW = 20;
const AT: Record<Exclude<What, "allocated">, number> = { load: 0, inference: 1, steady: 2 };

export function flame(state: State): HTMLElement {
  const { report } = state;
  if (report.stacks.rows.length === 0) return section("flame", "Flame graph", "", nothing("Nothing was allocated by ExecuTorch or a delegate."));
  const graph = new Flame(state);
  const native = report.stacks.rows.some((row) => row.native.length > 0);
  const search = h("input", { type: "search", id: "flame-search", placeholder: "Search (regular expression)", "aria-label": "Search the flame graph", input: (event: Event) => graph.search((event.target as HTMLInputElement).value) });
  return section("flame", "Flame graph",
    "Width is bytes. Click a frame to zoom into it; arrow keys walk, Enter zooms, Escape goes back.",
    h("div", { class: "controls" },
      choices<What>("Bytes", [["inference", "live at inference peak"], ["load", "live at load peak"], ["steady", "steady"], ["allocated", "allocated in all"]], graph.what, (value) => graph.set(value, graph.how)),
      choices<How>("Path", native ? [["scope", "by scope"], ["native", "by call stack"]] : [["scope", "by scope"]], "scope", (value) => graph.set(graph.what, value)),
      search, graph.found, h("button", { type: "button", class: "reset", click: () => graph.reset() }, "Whole graph")),
    graph.element);
}

function weight(row: StackRow, what: What): { bytes: number; blocks: number } {
  return what === "allocated" ? row.allocated : row.live[AT[what]]!;
}

function grow(report: Report, what: What, how: How): Tree {
  const root: Tree = { name: "all", value: 0, blocks: 0, owners: new Set(), children: new Map() };
  for (const row of report.stacks.rows) {
    const { bytes: count, blocks } = weight(row, what);
    if (count === 0 || (how === "native" && row.native.length === 0)) continue;
    const owner = report.keys[row.key]!.owner;
    let node = root;
    const path = how === "native" ? [...row.native, row.scope.at(-1)!] : row.scope;
    for (const frame of [-1, ...path]) {
      if (frame !== -1) {
        const name = report.stacks.frames[frame]!;
        let child = node.children.get(name);
        if (!child) node.children.set(name, (child = { name, value: 0, blocks: 0, owners: new Set(), children: new Map() }));
        node = child;
      }
      node.value += count;
      node.blocks += blocks;
      node.owners.add(owner);
    }
  }
  return root;
}

class Flame {
  readonly element = h("div", { class: "flame", role: "tree", "aria-label": "Flame graph" });
  readonly found = h("output", { class: "found" });
  what: What = "inference";
  how: How = "scope";
  private root!: Box;
  private top!: Box;
  private focused!: Box;
  private pattern: RegExp | null = null;
  private width = 900;

  constructor(private readonly state: State) {
    if (!state.report.summary.peaks.inference) this.what = state.report.summary.peaks.load ? "load" : "allocated";
    this.set(this.what, this.how);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("pointerleave", hideTooltip);
    state.onRedraw(() => this.draw());
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry!.contentRect.width);
      if (width > 0 && width !== this.width) { this.width = width; this.draw(); }
    }).observe(this.element);
  }

  set(what: What, how: How): void {
    [this.what, this.how] = [what, how];
    const tree = hierarchy(grow(this.state.report, what, how), (node) => [...node.children.values()].sort((a, b) => b.value - a.value));
    // A node's own value stands in the tree; d3 would add those of the children to it.
    tree.eachAfter((node) => { (node as { value?: number }).value = node.data.value; });
    this.root = partition<Tree>()(tree);
    this.top = this.focused = this.root;
    this.draw();
  }

  reset(): void { this.top = this.focused = this.root; this.draw(); }

  search(text: string): void {
    try {
      this.pattern = text === "" ? null : new RegExp(text, "i");
      this.found.classList.remove("wrong");
    } catch {
      this.pattern = null;
      this.found.classList.add("wrong");
    }
    this.draw();
  }

  private draw(): void {
    const { top } = this;
    const scale = this.width / Math.max(top.x1 - top.x0, 1e-12);
    const boxes: HTMLElement[] = [];
    let depth = 0;
    const place = (node: Box, left: number, width: number) => {
      depth = Math.max(depth, node.depth);
      boxes.push(this.box(node, left, width));
    };
    for (const parent of top.ancestors().reverse()) if (parent !== top) place(parent, 0, this.width);
    const walk = (node: Box) => {
      const width = (node.x1 - node.x0) * scale;
      if (width < 0.6) return;
      place(node, (node.x0 - top.x0) * scale, width);
      node.children?.forEach(walk);
    };
    walk(top);
    const matched = this.matched(this.root);
    this.found.textContent = this.found.classList.contains("wrong") ? "not a regular expression"
      : this.pattern ? `${size(matched)}, ${percent(matched, this.root.data.value)} matches` : "";
    replace(this.element, ...boxes);
    this.element.style.height = `${(depth + 1) * ROW + 4}px`;
  }

  private box(node: Box, left: number, width: number): HTMLElement {
    const { name, value, owners } = node.data;
    const hit = this.pattern?.test(name) ?? false;
    const color = owners.size === 1 ? ownerColor([...owners][0]!) : null;
    const shown = plain(node.depth === 0 ? `all, ${size(value)}` : name).slice(0, Math.ceil(width / 4));
    return h("div", {
      class: `frame${color ? "" : " mixed"}${hit ? " hit" : this.pattern ? " miss" : ""}`, role: "treeitem", "aria-level": node.depth + 1,
      tabindex: node === this.focused ? 0 : -1, "aria-label": `${plain(name).slice(0, 300)}, ${exactSize(value)}`,
      style: `left:${left.toFixed(2)}px;width:${Math.max(width - 1, 0.6).toFixed(2)}px;top:${node.depth * ROW}px;${color ? `--frame:${color}` : ""}`,
      click: () => this.zoom(node), pointermove: (event: PointerEvent) => this.hover(event, node),
    }, width > 24 ? shown : null);
  }

  private zoom(node: Box): void {
    this.top = this.focused = node;
    this.draw();
    this.element.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  private hover(event: PointerEvent, node: Box): void {
    const { name, value, blocks, owners } = node.data;
    showTooltip(event, h("b", { class: "wrap" }, plain(name).slice(0, 600)), h("div", {}, bytes(value), ` · ${digits(blocks)} blocks · ${percent(value, this.root.data.value)}`),
      h("div", { class: "muted" }, [...owners].map(ownerName).slice(0, 5).join(", ")));
  }

  /** Bytes under the outermost frames that match: none is counted twice. */
  private matched(node: Box): number {
    if (!this.pattern) return 0;
    if (node.depth > 0 && this.pattern.test(node.data.name)) return node.data.value;
    return (node.children ?? []).reduce((sum, child) => sum + this.matched(child), 0);
  }

  private key(event: KeyboardEvent): void {
    const node = this.focused;
    const siblings = node.parent?.children ?? [node];
    const at = siblings.indexOf(node);
    const next = { ArrowDown: node.children?.[0], ArrowUp: node.parent, ArrowRight: siblings[at + 1], ArrowLeft: siblings[at - 1] }[event.key];
    if (event.key === "Enter" || event.key === " ") this.zoom(node);
    else if (event.key === "Escape") this.reset();
    else if (next) {
      this.focused = next;
      if (next === this.top.parent) this.top = next;
      this.draw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
    this.element.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  }
}
