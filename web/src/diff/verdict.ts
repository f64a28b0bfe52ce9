import type { Diff, Figures, PeakChange } from "../data";
import { h } from "../dom";
import { categoryName, ownerName, plain, shorten } from "../names";
import { section } from "../sections/section";
import { bytes, change, percent, size } from "../units";

const NAMES: Record<string, string> = { load: "Peak of load", inference: "Peak of inference", steady: "Steady" };

export function verdict(diff: Diff): HTMLElement {
  return section("verdict", "Verdict", "",
    h("p", { class: "sentence" }, sentence(diff)),
    h("div", { class: "figures three" }, ...diff.peaks.map(figure)));
}

export const total = (one: Figures): number => one.private_bytes + one.file_bytes;

/** Nothing that was counted differs, at any level. */
export const isEmpty = (diff: Diff): boolean =>
  [diff.changes, diff.instances, diff.phases, diff.arenas, diff.operators, diff.blocks].every((rows) => rows.length === 0) &&
  diff.peaks.every((peak) => peak.delta_bytes === 0);

/** Of the moments that moved the one where most is live. */
export function highest(diff: Diff): PeakChange | undefined {
  const top = (peak: PeakChange) => Math.max(total(peak.a!), total(peak.b!));
  return diff.peaks.filter((peak) => peak.a && peak.b && peak.delta_bytes !== 0).sort((x, y) => top(y) - top(x))[0];
}

function sentence(diff: Diff): string {
  if (isEmpty(diff)) return "No change: every counted byte is the same.";
  const most = highest(diff);
  if (!most) return "The peaks are the same; what lies under them has moved.";
  const [a, b] = [total(most.a!), total(most.b!)];
  const where = most.at === "steady" ? "at rest" : `at the peak of ${most.at}`;
  const more = `${shorten(plain(diff.b), 60)} needs ${size(Math.abs(b - a))} ${b > a ? "more" : "less"} ${where}: ${size(b)} for ${size(a)}${a ? ` (${b > a ? "+" : "-"}${percent(Math.abs(b - a), a)})` : ""}.`;
  const row = diff.changes.find((one) => one.at === most.at);
  return row ? `${more} ${percent(row.share, 1)} of what moved is ${ownerName(row.owner)}'s ${categoryName(row.category)}.` : more;
}

function figure(peak: PeakChange): HTMLElement {
  const side = (one: Figures | null) => (one ? bytes(total(one)) : "none");
  return h("div", { class: "figure", id: `figure-${peak.at}` },
    h("h3", {}, NAMES[peak.at] ?? peak.at),
    h("p", { class: "value" }, peak.a && peak.b ? change(peak.delta_bytes) : "-"),
    h("p", { class: "parts" }, side(peak.a), " → ", side(peak.b)),
    peak.comparable ? null : h("p", { class: "parts unlike" }, "not like for like"));
}
