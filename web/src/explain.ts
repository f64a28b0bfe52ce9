// The meaning of every word, one click away.

import type { Word } from "./data";
import { h, replace } from "./dom";
import { exactSize } from "./units";

let words = new Map<string, { means: string; do: string; kind: string }>();
const dialog = h("dialog", { class: "explain", "aria-labelledby": "explain-word" });

export function prepareWords(all: Word[]): HTMLElement {
  words = new Map(all.map((word) => [word.word, word]));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return dialog;
}

/** The entry that stands for a balance line, an owner, a category, a finding or an issue. */
export function wordOf(text: string): string {
  const name = text.trim().toLowerCase().replace(/[\s-]+/g, "_");
  if (words.has(name)) return name;
  if (name.startsWith("libraries_of")) return "libraries_of";
  if (name.startsWith("planned")) return "planned_memory";
  return name.startsWith("delegate:") ? "delegate" : name;
}

export function explain(text: string, title: string, count?: number, note?: string): void {
  const entry = words.get(wordOf(text));
  replace(dialog,
    h("h3", { id: "explain-word" }, title),
    count !== undefined && h("p", { class: "exact" }, exactSize(count), note ? ` · ${note}` : ""),
    h("p", {}, entry?.means ?? "No entry for this word."),
    entry ? h("p", {}, h("b", {}, "What to do: "), entry.do) : null,
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")));
  dialog.showModal();
}

/** A word that explains itself when clicked. */
export function word(text: string, shown: string, count?: number, note?: string): HTMLElement {
  return h("button", { type: "button", class: "word", title: "What is this?", click: () => explain(text, shown, count, note) },
    shown);
}
