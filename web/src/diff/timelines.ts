import { Chart, controls } from "../chart";
import type { DiffReport } from "../data";
import { h } from "../dom";
import { plain, shorten } from "../names";
import { nothing, section } from "../sections/section";
import type { State } from "../state";

/** One above the other, on one scale of bytes; each with its own time. */
export function timelines(report: DiffReport, states: State[]): HTMLElement {
  const names = [report.diff.a, report.diff.b];
  const charts = states.map((state, index) => state.report.samples.stamps.length ? new Chart(state, `timeline-${"ab"[index]}`) : null);
  const drawn = charts.filter((chart) => chart !== null);
  if (drawn.length === 2) drawn[0]!.pairWith(drawn[1]!);
  const partial = states.some((state) => state.report.samples.stamps.length > 0 && state.report.samples.operators.length === 0);
  return section("timeline", "Timelines", "Live bytes of ExecuTorch and its delegates, on one scale of bytes; each has its own time. Drag to zoom, click to read a moment." +
    (partial ? " Of a summary only the begin, the peak and the end of each phase are known." : ""),
    drawn.length ? controls(drawn) : null,
    ...charts.flatMap((chart, index) => [
      h("h3", {}, `${"ab"[index]}: ${shorten(plain(names[index]!), 80)}`),
      ...(chart ? [chart.element, chart.legend] : [nothing("Nothing of ExecuTorch was live at any time.")])]));
}
