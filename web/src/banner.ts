// The head of a page: what it is about, and what changes the whole page.

import { h } from "./dom";
import { plain, shorten } from "./names";
import type { State } from "./state";
import { showAllDigits } from "./units";

export function banner(title: string, facts: string, states: State[]): HTMLElement {
  return h("header", { class: "top" },
    h("div", { class: "brand" }, h("span", { class: "logo", "aria-hidden": "true" }), "etmem"),
    h("div", { class: "what" }, h("h1", { title: plain(title).slice(0, 2000) }, shorten(plain(title), 90)), h("p", {}, facts)),
    h("div", { class: "tools" }, digitsButton(states), themeButton(states),
      h("button", { type: "button", class: "print", title: "Print (light, every section)", click: () => print() }, "Print")));
}

function digitsButton(states: State[]): HTMLElement {
  const button = h("button", { type: "button", "aria-pressed": "false", title: "All digits instead of MiB (b)", id: "all-digits" }, "Bytes");
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    showAllDigits(on);
    for (const state of states) state.redraw();
  });
  return button;
}

/** Follows the system until it is clicked. */
function themeButton(states: State[]): HTMLElement {
  const root = document.documentElement;
  const button = h("button", { type: "button", title: "Light or dark (t)", id: "theme" }, "Theme");
  button.addEventListener("click", () => {
    const dark = root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset["theme"] = dark ? "light" : "dark";
    for (const state of states) state.redraw();
  });
  return button;
}
