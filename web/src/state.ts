// What several views share: the moment that is looked at, and whom to tell when it or the units change.

import type { Report } from "./data";

type Listener = () => void;

export class State {
  stamp: number;
  private readonly moved: Listener[] = [];
  private readonly redrawn: Listener[] = [];

  constructor(readonly report: Report) {
    this.stamp = highest(report);
  }

  /** Index of the last sample at or before the chosen moment. */
  get sample(): number {
    return sampleAt(this.report.samples.stamps, this.stamp);
  }

  onMove(listener: Listener): void { this.moved.push(listener); }
  onRedraw(listener: Listener): void { this.redrawn.push(listener); }

  moveTo(stamp: number): void {
    this.stamp = stamp;
    for (const listener of this.moved) listener();
  }

  moveToMark(name: string): void {
    const mark = this.report.marks.find((one) => one.name === name);
    if (mark) this.moveTo(mark.stamp);
  }

  redraw(): void { for (const listener of this.redrawn) listener(); }
}

export function sampleAt(stamps: number[], stamp: number): number {
  let low = 0;
  let high = stamps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stamps[middle]! <= stamp) low = middle + 1;
    else high = middle;
  }
  return Math.max(low - 1, 0);
}

function highest(report: Report): number {
  const { load, inference } = report.summary.peaks;
  const total = (peak: typeof load) => (peak ? peak.moment.private_bytes + peak.moment.file_bytes : -1);
  const name = total(load) > total(inference) ? "load" : "inference";
  return report.marks.find((mark) => mark.name === name)?.stamp ?? report.samples.stamps[0] ?? 0;
}
