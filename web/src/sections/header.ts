import { h } from "../dom";
import { plain, shorten } from "../names";
import type { State } from "../state";

const DTYPES: Record<string, string> = { float: "f", bfloat: "bf", int: "i", uint: "u" };

export function header(state: State): HTMLElement {
  const { summary, title } = state.report;
  const { target } = summary;
  const inputs = [...new Set(summary.target.inputs.map((input) =>
    `${plain(input.method)} ${dtype(input.dtype)}[${input.shape.join(",")}]${input.upper_bound ? " (upper bound)" : ""}`))];
  const facts = [
    inputs.slice(0, 3).join("; ") + (inputs.length > 3 ? ` and ${inputs.length - 3} more` : ""),
    [target.arch, target.isa].filter(Boolean).join(" "), target.loader && `loader ${target.loader}`,
    `ExecuTorch ${target.executorch}`, target.dry ? "dry run: counted bytes only" : "",
    target.threads === null ? "" : `${target.threads} threads`, ...target.backend_options,
  ].filter(Boolean).map((fact) => shorten(plain(String(fact)), 90));
  return h("header", { class: "top" },
    h("div", { class: "brand" }, h("span", { class: "logo", "aria-hidden": "true" }), "etmem"),
    h("div", { class: "what" }, h("h1", { title: plain(title).slice(0, 2000) }, shorten(plain(title), 70)),
      h("p", {}, facts.join("  ·  "))),
    h("div", { class: "tools" }, digitsButton(state), themeButton(state),
      h("button", { type: "button", class: "print", title: "Print (light, every section)", click: () => print() }, "Print")));
}

function dtype(name: string): string {
  const match = /^([a-z]+?)(\d+)$/.exec(name);
  return match ? `${DTYPES[match[1]!] ?? match[1]}${match[2]}` : plain(name);
}

function digitsButton(state: State): HTMLElement {
  const button = h("button", { type: "button", "aria-pressed": "false", title: "All digits instead of MiB (b)", id: "all-digits" }, "Bytes");
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    state.setAllDigits(on);
  });
  return button;
}

/** Follows the system until it is clicked. */
function themeButton(state: State): HTMLElement {
  const root = document.documentElement;
  const button = h("button", { type: "button", title: "Light or dark (t)", id: "theme" }, "Theme");
  button.addEventListener("click", () => {
    const dark = root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset["theme"] = dark ? "light" : "dark";
    state.redraw();
  });
  return button;
}

const PARTS = [
  ["verdict", "Verdict"], ["findings", "Findings"], ["balance", "Balance"], ["timeline", "Timeline"], ["owners", "Owners"],
  ["arenas", "Arenas"], ["delegates", "Delegates"], ["operators", "Operators"], ["flame", "Flame graph"],
  ["phases", "Phases"], ["issues", "Issues"],
] as const;

export function navigation(): HTMLElement {
  return h("nav", { "aria-label": "Parts of the report" }, ...PARTS.map(([id, name]) => h("a", { href: `#${id}` }, name)));
}
