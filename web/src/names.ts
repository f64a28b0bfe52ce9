// Owners, categories and phases as a report spells them.

import type { Phase } from "./data";

const OWNERS: Record<string, string> = { executorch: "ExecuTorch", host: "host", profiler: "profiler" };
const MOMENTS: Record<string, string> = { load: "peak of load", inference: "peak of inference", steady: "steady" };
const BALANCES: Record<string, string> = {
  load: "end of load", first_inference: "first inference", last_inference: "at rest, last inference",
};

/** At most `limit` characters; both ends tell a name apart, so the middle goes. */
export function shorten(text: string, limit = 48): string {
  if (text.length <= limit) return text;
  const tail = Math.floor((limit - 1) / 2);
  return `${text.slice(0, limit - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/** Control and direction characters made visible: a name must not reorder or hide what stands beside it. */
export function plain(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export const ownerName = (owner: string): string => OWNERS[owner] ?? shorten(plain(owner.replace(/^delegate:/, "")));
export const categoryName = (category: string): string =>
  category === "inputs_outputs" ? "inputs, outputs" : category.replaceAll("_", " ");
export const momentName = (name: string): string => MOMENTS[name] ?? name;
export const balanceName = (at: string): string => BALANCES[at] ?? at;
export const lineName = (line: string): string =>
  line === "executorch" || line === "host" || line.startsWith("delegate:") ? ownerName(line) : shorten(plain(line));

/** The longest form that fits: ``inference forward 2``, ``inference 2``, ``2``, or nothing. */
export function phaseLabel(phase: Phase, limit: number): string {
  const number = phase.iteration === null ? "" : String(phase.iteration + 1);
  const kind = phase.kind.replaceAll("_", " ");
  const forms = [phaseName(phase), `${kind} ${number}`.trim(), number];
  return forms.find((form) => form.length <= limit) ?? "";
}

export function phaseName(phase: Pick<Phase, "kind" | "method" | "iteration">, limit = 60): string {
  const words = [phase.kind.replaceAll("_", " ")];
  if (phase.method !== null) words.push(plain(phase.method));
  if (phase.iteration !== null) words.push(String(phase.iteration + 1));
  return shorten(words.join(" "), limit);
}
