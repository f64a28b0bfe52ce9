import type { Balance } from "../data";
import { lineColor } from "../colors";
import { choices, h, replace } from "../dom";
import { explain } from "../explain";
import { balanceName, lineName } from "../names";
import type { State } from "../state";
import { bytes, exactSize, percent, size } from "../units";
import { nothing, section } from "./section";

export function balance(state: State): HTMLElement {
  const { balances, high_waters: waters, target } = state.report.summary;
  if (balances.length === 0)
    return section("balance", "Balance", "", nothing(target.dry ? "A dry run touches no page of what is not computed: counted bytes only, no RSS." : "No snapshot of residency was taken."));
  const holder = h("div", { class: "balance" });
  const draw = (one: Balance) => replace(holder, bar(one), legend(one));
  const last = balances.at(-1)!;
  draw(last);
  state.onRedraw(() => undefined);
  return section("balance", "Balance", "What the system's RSS is made of, to the byte. Click a part for its definition.",
    choices("Moment", balances.map((one) => [one.at, balanceName(one.at)] as const), last.at, (at) => draw(balances.find((one) => one.at === at)!)),
    holder,
    ...waters.map((water) => h("p", { class: "note" },
      "The kernel's high water in ", water.at, ": ", bytes(water.high_water_bytes, "measured"), " = ", bytes(water.counted_bytes), " counted + ",
      bytes(water.before_bytes, "inferred"), " before + ", bytes(water.other_bytes, "inferred"), " other.")));
}

interface Part { line: string; name: string; bytes: number; source: string; color: string }

function parts(one: Balance): Part[] {
  const found = one.lines.map((line) => ({ line: line.line, name: lineName(line.line), bytes: line.bytes, source: line.source, color: lineColor(line.line) }));
  return [...found, { line: "unaccounted", name: "unaccounted", bytes: one.unaccounted_bytes, source: "inferred", color: "transparent" }];
}

function bar(one: Balance): HTMLElement {
  const width = parts(one).reduce((sum, part) => sum + Math.max(part.bytes, 0), 0) || 1;
  return h("div", { class: "bar tall", role: "group", "aria-label": `RSS ${exactSize(one.rss_bytes)}` },
    ...parts(one).filter((part) => part.bytes > 0).map((part) => h("button", {
      type: "button", class: `part ${part.line === "unaccounted" ? "unaccounted" : part.source}`,
      style: `width:${(100 * part.bytes) / width}%;background-color:${part.color}`,
      "aria-label": `${part.name}, ${exactSize(part.bytes)}, ${part.source}`, title: `${part.name}: ${size(part.bytes)} (${part.source})`,
      click: () => explain(part.line, part.name, part.bytes, part.source),
    }, part.bytes / width > 0.08 ? h("span", {}, part.name) : null)));
}

function legend(one: Balance): HTMLElement {
  return h("ul", { class: "legend sum" },
    ...parts(one).map((part) => h("li", {}, h("button", { type: "button", class: "entry", click: () => explain(part.line, part.name, part.bytes, part.source) },
      h("i", { class: part.line === "unaccounted" ? "unaccounted" : part.source, style: `background-color:${part.color}` }), h("span", { class: "name" }, part.name),
      bytes(part.bytes, part.source), h("span", { class: "share" }, percent(part.bytes, one.rss_bytes))))),
    h("li", { class: "total" }, h("span", { class: "name" }, "RSS"), bytes(one.rss_bytes, "measured")));
}
