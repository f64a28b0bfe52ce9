// Live bytes grouped for the chart: by owner, category, delegate instance or operator.

import type { Key, Report } from "./data";
import { categoryColor, instanceColor, operatorColor, ownerColor } from "./colors";
import { categoryName, ownerName, plain, shorten } from "./names";

export type Grouping = "owner" | "category" | "instance" | "operator";

export interface Layer {
  id: string;
  name: string;
  color: string;
  file: boolean;
  counted: boolean;
  values: number[];
}

const RANK: Record<string, number> = { executorch: 0, host: 2 };

export function layers(report: Report, grouping: Grouping, withHost: boolean): Layer[] {
  if (grouping === "operator") return [...operatorLayers(report), ...(withHost ? layers(report, "owner", true).filter((layer) => !layer.counted) : [])];
  const found = new Map<string, Layer>();
  const ordered = [...report.samples.series].sort((a, b) => order(report, a.key) - order(report, b.key) || Number(a.file) - Number(b.file));
  for (const series of ordered) {
    const key = report.keys[series.key]!;
    if (!key.counted && !withHost) continue;
    const id = `${groupOf(key, grouping)}\n${series.file}`;
    const layer = found.get(id);
    if (layer) layer.values = layer.values.map((value, index) => value + series.values[index]!);
    else found.set(id, { id, ...look(key, grouping), file: series.file, counted: key.counted, values: series.values });
  }
  return [...found.values()];
}

/** Operators by their own colour, what no operator asked for by its category's. */
function operatorLayers(report: Report): Layer[] {
  const ordered = [...report.samples.operators].sort((a, b) => (RANK[a.owner] ?? 1) - (RANK[b.owner] ?? 1));
  return ordered.map((one) => ({
    id: `${one.owner}\n${one.operator}\n${one.category}\n${one.file}`,
    name: one.operator ? shorten(plain(one.operator)) : `${ownerName(one.owner)} ${categoryName(one.category)}, no operator`,
    color: one.operator ? operatorColor(one.owner, one.operator) : categoryColor(one.category),
    file: one.file, counted: true, values: one.values,
  }));
}

function order(report: Report, key: number): number {
  return (RANK[report.keys[key]!.owner] ?? 1) * 1000 + key;
}

function groupOf(key: Key, grouping: Grouping): string {
  if (grouping === "owner") return key.owner;
  return grouping === "category" ? key.category : `${key.owner}/${key.instance ?? ""}`;
}

function look(key: Key, grouping: Grouping): { name: string; color: string } {
  if (grouping === "category") return { name: categoryName(key.category), color: categoryColor(key.category) };
  if (grouping === "owner" || key.instance === null) {
    const shared = grouping === "instance" && key.owner.startsWith("delegate:") ? ", shared" : "";
    return { name: ownerName(key.owner) + shared, color: ownerColor(key.owner) };
  }
  const index = Number(/\[(\d+)\]$/.exec(key.instance)?.[1] ?? 0);
  return { name: shorten(plain(key.instance)), color: instanceColor(key.owner, index) };
}

/** Private and file bytes of the counted owners at each sample. */
export function totals(report: Report): { all: number[]; file: number[] } {
  const all = report.samples.stamps.map(() => 0);
  const file = [...all];
  for (const series of report.samples.series) {
    if (!report.keys[series.key]!.counted) continue;
    series.values.forEach((value, index) => {
      all[index]! += value;
      if (series.file) file[index]! += value;
    });
  }
  return { all, file };
}
