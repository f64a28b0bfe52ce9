// The page of a diff: two runs, what moved between them, and why.

import { banner } from "../banner";
import type { DiffReport } from "../data";
import { h } from "../dom";
import { word } from "../explain";
import { plain, shorten } from "../names";
import { navigation } from "../sections/header";
import { State } from "../state";
import { changes } from "./changes";
import { details } from "./details";
import { mismatches, reasons } from "./reasons";
import { timelines } from "./timelines";
import { verdict } from "./verdict";

/** What a page is made of; `states` are told of keys and of the units. */
export interface Page { states: State[]; parts: (HTMLElement | null)[] }

const PARTS = [
  ["verdict", "Verdict"], ["reasons", "Reasons"], ["mismatches", "Alike?"], ["timeline", "Timelines"], ["changes", "What moved"],
  ["details", "Details"],
] as const;

export function diffPage(report: DiffReport): Page {
  const states = [new State(report.a), new State(report.b)];
  const { diff } = report;
  const parts = [verdict(diff), reasons(diff), mismatches(report), timelines(report, states), changes(diff), details(diff), footer()];
  const head = banner(report.title, `${sides(diff.a, diff.b)}; a change is b less a`, states);
  return { states, parts: [head, navigation(parts, PARTS), ...parts] };
}

export const sides = (a: string, b: string): string => `a: ${shorten(plain(a), 60)}, b: ${shorten(plain(b), 60)}`;

function footer(): HTMLElement {
  const keys = [["j k", "next, previous part"], ["t", "theme"], ["b", "all digits"], ["← →", "move in a timeline"], ["+ − 0", "zoom"], ["l i s", "load peak, inference peak, steady"]] as const;
  return h("footer", {},
    h("p", {}, "Only bytes that are ", h("span", { class: "bytes counted" }, word("counted", "counted")), " are compared: they are the same from run to run. What is ",
      h("span", { class: "bytes measured" }, word("measured", "measured")), " by the system stands beside."),
    h("p", {}, "Keys: ", ...keys.flatMap(([key, what]) => [h("kbd", {}, key), ` ${what}  `])));
}
