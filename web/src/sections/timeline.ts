import { Chart, controls } from "../chart";
import type { State } from "../state";
import { blocksAt } from "./blocks";
import { nothing, section } from "./section";

export function timeline(state: State): HTMLElement {
  if (state.report.samples.stamps.length === 0)
    return section("timeline", "Timeline", "", nothing("Nothing of ExecuTorch was live at any time."));
  const chart = new Chart(state);
  return section("timeline", "Timeline",
    "Live bytes of ExecuTorch and its delegates, exact at every step. Drag to zoom, click to list what is live there.",
    controls([chart]), chart.element, chart.legend, blocksAt(state));
}
