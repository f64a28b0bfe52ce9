import type { Finding } from "../data";
import { ownerColor } from "../colors";
import { h } from "../dom";
import { word } from "../explain";
import { ownerName, plain, shorten } from "../names";
import { filterOwners } from "./owners";
import type { State } from "../state";
import { bytes } from "../units";
import { goTo, nothing, section } from "./section";

/** Finding codes that speak of load; the others show at the peak of inference. */
const IN_LOAD = new Set(["double_weights", "packed_twice", "original_kept", "transposed_weight"]);

export function findings(state: State): HTMLElement {
  const rows = [...state.report.summary.findings].sort((a, b) => (b.saving_bytes ?? -1) - (a.saving_bytes ?? -1) || b.bytes - a.bytes);
  return section("findings", "Findings", rows.length ? "What in the model makes it so, largest saving first." : "",
    rows.length ? h("ol", { class: "findings" }, ...rows.map((row) => finding(state, row))) : nothing("Nothing stands out."));
}

function finding(state: State, row: Finding): HTMLElement {
  const sure = row.certainty === "exact";
  const saving = row.saving_bytes === null || row.saving_bytes === 0 ? null
    : h("span", { class: "saving" }, "saves ", bytes(row.saving_bytes, sure ? "counted" : row.certainty),
      ...(sure ? [] : [" (", word(row.certainty, row.certainty), ")"]));
  return h("li", { style: `--owner:${ownerColor(row.owner)}` },
    h("div", { class: "line" }, word(row.code, plain(row.code), row.bytes, ownerName(row.owner)),
      h("span", { class: "owner" }, ownerName(row.owner)), bytes(row.bytes), saving,
      h("button", { type: "button", class: "link", click: () => show(state, row) }, "show its bytes")),
    h("p", {}, shorten(plain(row.advice), 1200)));
}

/** At the moment where they matter, in the table of owners and in the list of blocks. */
function show(state: State, row: Finding): void {
  const name = IN_LOAD.has(row.code) ? "load" : "inference";
  const mark = state.report.marks.find((one) => one.name === name) ?? state.report.marks[0];
  if (mark) state.moveTo(mark.stamp);
  filterOwners(ownerName(row.owner));
  goTo("timeline");
}
