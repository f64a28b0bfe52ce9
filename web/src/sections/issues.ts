import { h } from "../dom";
import { word } from "../explain";
import { plain, shorten } from "../names";
import type { State } from "../state";
import { nothing, section } from "./section";

export function issues(state: State): HTMLElement {
  const rows = state.report.summary.issues;
  return section("issues", "Issues", rows.length ? "Remarks on the data: what may be wrong or missing in the figures." : "",
    rows.length === 0 ? nothing("None: every figure can be relied on.") : h("ul", { class: "issues" }, ...rows.map((row) =>
      h("li", { class: row.severity }, h("div", { class: "line" }, h("b", { class: "severity" }, row.severity), word(row.code, plain(row.code))),
        h("p", {}, shorten(plain(row.message), 1000)), row.hint ? h("p", { class: "hint" }, shorten(plain(row.hint), 1000)) : null))));
}

/** Above everything where a printed figure is wrong. */
export function alarm(state: State): HTMLElement | null {
  const rows = state.report.summary.issues.filter((row) => row.severity === "error");
  if (rows.length === 0) return null;
  return h("div", { class: "alarm", role: "alert" }, h("b", {}, "A figure is wrong or missing. "), shorten(plain(rows.map((row) => row.message).join("; ")), 400), " ", h("a", { href: "#issues" }, "Issues"));
}
