import type { Diff, DiffReport, Mismatch, Reason } from "../data";
import { h } from "../dom";
import { word, wordOf } from "../explain";
import { plain, shorten } from "../names";
import { nothing, section } from "../sections/section";
import { facts } from "../sections/header";
import { change } from "../units";

export function reasons(diff: Diff): HTMLElement {
  return section("reasons", "Reasons", diff.reasons.length ? "What was configured otherwise, then findings, delegates and the file, by what each brings." : "",
    diff.reasons.length === 0 ? nothing("None has a name.") : h("ol", { class: "findings reasons" }, ...diff.reasons.map(reason)));
}

function reason(row: Reason): HTMLElement {
  const entry = wordOf(row.subject);
  return h("li", {},
    h("div", { class: "line" }, word(row.code.startsWith("finding") || entry === "delegates" ? row.subject : row.code, plain(row.subject)),
      h("span", { class: "owner" }, row.code.replaceAll("_", " ")), row.delta_bytes === null ? null : change(row.delta_bytes)),
    h("p", {}, shorten(plain(row.text), 1200)));
}

export function mismatches(report: DiffReport): HTMLElement {
  const { diff, a, b } = report;
  return section("mismatches", "Are they alike?", "",
    h("p", { class: "note" }, h("b", {}, "a"), ` ${facts(a)}`), h("p", { class: "note" }, h("b", {}, "b"), ` ${facts(b)}`),
    diff.mismatches.length === 0 ? nothing("Same target, runtime and options.")
      : h("ul", { class: "issues" }, ...diff.mismatches.map(mismatch)));
}

function mismatch(row: Mismatch): HTMLElement {
  return h("li", { class: row.code === "failed_run" ? "error" : "warning" },
    h("div", { class: "line" }, word(row.code, plain(row.code)), h("span", {}, `${shorten(plain(row.a), 120)} → ${shorten(plain(row.b), 120)}`)),
    h("p", { class: "hint" }, row.effect));
}
