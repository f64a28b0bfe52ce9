// Keys that work everywhere on the page; charts have their own besides.

import type { State } from "./state";
import { goTo } from "./sections/section";

export function keyboard(states: State[]): void {
  const jump = (name: string) => { for (const state of states) state.moveToMark(name); };
  const press = (id: string) => document.getElementById(id)?.click();
  const keys: Record<string, () => void> = {
    j: () => step(1), k: () => step(-1), t: () => press("theme"), b: () => press("all-digits"),
    "/": () => {
      const search = document.getElementById("flame-search");
      if (search) { goTo("flame"); search.focus({ preventScroll: true }); }
    },
    l: () => jump("load"), i: () => jump("inference"), s: () => jump("steady"),
  };
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, dialog[open]")) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
}

function step(by: number): void {
  const parts = [...document.querySelectorAll<HTMLElement>("section[id]")];
  const at = parts.findLastIndex((part) => part.getBoundingClientRect().top < 140);
  const next = parts[Math.min(Math.max(at + by, 0), parts.length - 1)];
  if (next) goTo(next.id);
}
