// A titled part of the page that the navigation can reach.

import { h } from "../dom";

export function section(id: string, title: string, note: string, ...content: (Node | null)[]): HTMLElement {
  const element = h("section", { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title), note ? h("p", { class: "note" }, note) : null);
  for (const part of content) if (part) element.append(part);
  return element;
}

export const nothing = (text: string): HTMLElement => h("p", { class: "nothing" }, text);

export function goTo(id: string): void {
  const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  document.getElementById(id)?.scrollIntoView({ behavior: smooth ? "smooth" : "auto", block: "start" });
}
