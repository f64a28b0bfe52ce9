// Bytes as text, as the text report spells them: one decimal, two below a tenth; all digits on request.

import { ticks } from "d3-array";
import { h } from "./dom";

const KIB = 1024;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
let exact = false;

export function size(count: number): string {
  if (exact) return `${digits(count)} B`;
  const magnitude = Math.abs(count);
  if (count === 0) return "0";
  if (magnitude < KIB) return `${count} B`;
  if (magnitude < MIB) return `${scaled(count / KIB)} KiB`;
  return magnitude < GIB ? `${scaled(count / MIB)} MiB` : `${scaled(count / GIB)} GiB`;
}

export const digits = (count: number): string => count.toLocaleString("en-US");
export const exactSize = (count: number): string => `${digits(count)} B`;

function scaled(value: number): string {
  return Math.abs(value) >= 999.95 ? value.toFixed(0) : value.toFixed(Math.abs(value) < 9.995 ? 2 : 1);
}

/** A figure that shows all its digits on hover, to a reader's machine, and when all digits are asked for. */
export function bytes(count: number, source = "counted"): HTMLElement {
  return h("span", { class: `bytes ${source}`, "data-bytes": count, title: `${exactSize(count)}, ${source}` },
    size(count));
}

/** What one run has more than another, with its sign. */
export function change(count: number): HTMLElement {
  const element = bytes(count);
  element.classList.add("change", count > 0 ? "rise" : count < 0 ? "fall" : "same");
  element.textContent = signed(count);
  return element;
}

const signed = (count: number): string => (count > 0 ? `+${size(count)}` : size(count));

export function showAllDigits(on: boolean): void {
  exact = on;
  for (const element of document.querySelectorAll<HTMLElement>("[data-bytes]")) {
    const count = Number(element.dataset["bytes"]);
    element.textContent = element.classList.contains("change") ? signed(count) : size(count);
  }
}

export function time(ns: number): string {
  const ms = ns / 1e6;
  if (Math.abs(ms) >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return Math.abs(ms) >= 1 ? `${ms.toFixed(1)} ms` : `${(ns / 1e3).toFixed(0)} us`;
}

/** Ticks of one axis: one unit, and as many decimals as tell them apart. */
export function timeTicks(ticks: number[]): string[] {
  const most = Math.max(...ticks.map(Math.abs), 0);
  const [unit, name] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : [1e3, "us"];
  const step = ticks.length > 1 ? Math.abs(ticks[1]! - ticks[0]!) / unit : 1;
  const decimals = step > 0 ? Math.min(Math.max(Math.ceil(-Math.log10(step) - 1e-9), 0), 6) : 0;
  return ticks.map((tick) => `${(tick / unit).toFixed(decimals)} ${name}`);
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return "-";
  const value = (100 * part) / whole;
  return value > 0 && value < 0.1 ? "<0.1 %" : `${value.toFixed(value < 10 ? 1 : 0)} %`;
}

/** Round steps in the unit that the largest is shown in. */
export function niceBytes(top: number, count: number): number[] {
  const unit = top >= MIB ? MIB : top >= KIB ? KIB : 1;
  return ticks(0, top / unit, count).map((tick) => tick * unit);
}
