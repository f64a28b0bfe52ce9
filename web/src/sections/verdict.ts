import type { Moment, OwnerBytes, Peak } from "../data";
import { ownerColor } from "../colors";
import { h } from "../dom";
import { explain, word } from "../explain";
import { categoryName, ownerName, phaseName, plain, shorten } from "../names";
import type { State } from "../state";
import { bytes, percent, size } from "../units";
import { goTo, section } from "./section";

export function verdict(state: State): HTMLElement {
  const { summary } = state.report;
  const balance = summary.balances.find((one) => one.at === "last_inference") ?? summary.balances.at(-1);
  return section("verdict", "Verdict", "",
    h("p", { class: "sentence" }, sentence(state)),
    h("div", { class: "figures" },
      figure(state, "load", "Load peak", summary.peaks.load),
      figure(state, "inference", "Inference peak", summary.peaks.inference),
      figure(state, "steady", "Steady", summary.peaks.steady),
      balance ? unaccounted(balance.unaccounted_bytes, balance.rss_bytes) : withoutBalance(summary.target.dry)));
}

export const total = (moment: Moment | OwnerBytes): number => moment.private_bytes + moment.file_bytes;

function sentence(state: State): string {
  const { summary, title } = state.report;
  const { load, inference } = summary.peaks;
  const name = shorten(plain(title), 60);
  if (!load && !inference) return `${name}: no load and no inference of ExecuTorch was seen.`;
  const inLoad = !inference || (load !== null && total(load.moment) > total(inference.moment));
  const top = (inLoad ? load : inference)!;
  const all = total(top.moment);
  const file = summary.programs.reduce((sum, program) => sum + (program.file_bytes ?? 0), 0);
  const times = file ? `, ${ratio(all / file)} times its file` : "";
  const other = inLoad ? inference : load;
  const rest = other ? `; ${inLoad ? "inference" : "load"} peaks at ${size(total(other.moment))}` : "";
  return `${name} needs ${size(all)} at its peak, in ${inLoad ? "load" : "inference"}${times}${rest}.${largest(top, all)}`;
}

const ratio = (value: number): string => value.toFixed(value < 9.95 ? 1 : 0);

function largest(peak: Peak, all: number): string {
  const owners = new Map<string, number>();
  const parts = new Map<string, { owner: string; category: string; bytes: number }>();
  for (const row of peak.moment.owners) {
    if (row.owner === "host" || row.owner === "profiler") continue;
    owners.set(row.owner, (owners.get(row.owner) ?? 0) + total(row));
    for (const one of row.categories) {
      const id = `${row.owner}\n${one.category}`;
      const sum = (parts.get(id)?.bytes ?? 0) + one.private_bytes + one.file_bytes;
      parts.set(id, { owner: row.owner, category: one.category, bytes: sum });
    }
  }
  const [best] = [...parts.values()].sort((a, b) => b.bytes - a.bytes);
  const [first] = [...owners].sort((a, b) => b[1] - a[1]);
  if (!first || !best) return "";
  return ` ${ownerName(first[0])} holds ${percent(first[1], all)} of it; the largest part is ` +
    `${ownerName(best.owner)}'s ${categoryName(best.category)}, ${size(best.bytes)}.`;
}

function figure(state: State, name: string, label: string, peak: Peak | null): HTMLElement {
  if (!peak) return h("div", { class: "figure", id: `figure-${name}` }, h("h3", {}, label), h("p", { class: "value" }, "-"), h("p", { class: "parts" }, "nothing seen"));
  const { moment } = peak;
  const phase = state.report.summary.phases[peak.phase];
  const mark = state.report.marks.find((one) => one.name === name);
  return h("div", { class: "figure", id: `figure-${name}` },
    h("h3", {}, label),
    h("p", { class: "value" }, bytes(total(moment))),
    ownerBar(moment),
    h("p", { class: "parts" }, bytes(moment.private_bytes), " ", word("private", "private"), " + ", bytes(moment.file_bytes), " ", word("file", "file-backed")),
    h("p", { class: "parts" }, phase ? phaseName(phase, 30) : "",
      mark ? h("button", { type: "button", class: "link", click: () => { state.moveTo(mark.stamp); goTo("timeline"); } }, "show") : null));
}

function ownerBar(moment: Moment): HTMLElement {
  const all = total(moment) || 1;
  const bar = h("div", { class: "bar", "aria-hidden": "true" });
  for (const row of moment.owners) {
    if (row.owner === "host" || row.owner === "profiler") continue;
    for (const [count, file] of [[row.private_bytes, false], [row.file_bytes, true]] as const)
      if (count > 0) bar.append(h("span", { class: file ? "file" : "", style: `width:${(100 * count) / all}%;background-color:${ownerColor(row.owner)}`, title: `${ownerName(row.owner)}${file ? ", file-backed" : ""}: ${size(count)}` }));
  }
  return bar;
}

function unaccounted(count: number, rss: number): HTMLElement {
  return h("div", { class: "figure", id: "figure-unaccounted" },
    h("h3", {}, "Unaccounted"),
    h("p", { class: "value" }, bytes(count, "inferred")),
    h("div", { class: "bar", "aria-hidden": "true" }, h("span", { style: `width:${Math.min(100, (100 * Math.abs(count)) / (rss || 1))}%`, class: "unaccounted" })),
    h("p", { class: "parts" }, percent(Math.abs(count), rss), " of ", bytes(rss, "measured"), " ", word("rss", "RSS")),
    h("p", { class: "parts" }, h("button", { type: "button", class: "link", click: () => goTo("balance") }, "show")));
}

function withoutBalance(dry: boolean): HTMLElement {
  return h("div", { class: "figure", id: "figure-unaccounted" }, h("h3", {}, "Unaccounted"), h("p", { class: "value" }, "-"),
    h("p", { class: "parts" }, dry ? "a dry run measures no RSS" : "no snapshot of residency",
      dry ? null : h("button", { type: "button", class: "link", click: () => explain("residency_unavailable", "residency_unavailable") }, "why")));
}
