import { h } from "../dom";
import { plain, shorten } from "../names";
import type { State } from "../state";
import { word } from "../explain";

export function footer(state: State): HTMLElement {
  const { environment, target } = state.report.summary;
  return h("footer", {},
    h("p", {}, "Figures: ", h("span", { class: "bytes counted" }, word("counted", "counted")), " from every allocation, ",
      h("span", { class: "bytes measured" }, word("measured", "measured")), " by the system, ", h("span", { class: "bytes inferred" }, word("inferred", "inferred")), " from both, ",
      h("span", { class: "bytes estimated" }, word("estimated", "estimated")), " for a case that was not run."),
    h("p", {}, shorten(plain([`etmem ${environment.etmem}`, environment.platform, environment.allocator, target.cpu, `${target.runtime} runtime`, state.report.trace].filter(Boolean).join(" · ")), 400)),
    h("p", {}, "Keys: ", ...[["j k", "next, previous part"], ["t", "theme"], ["b", "all digits"], ["/", "search the flame graph"], ["← →", "move in the timeline"], ["+ − 0", "zoom"], ["l i s", "load peak, inference peak, steady"]].flatMap(([key, what]) => [h("kbd", {}, key!), ` ${what}  `])));
}
