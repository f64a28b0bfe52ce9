import { banner } from "../banner";
import type { Report } from "../data";
import { h } from "../dom";
import { plain, shorten } from "../names";
import type { State } from "../state";

const DTYPES: Record<string, string> = { float: "f", bfloat: "bf", int: "i", uint: "u" };

export const header = (state: State): HTMLElement => banner(state.report.title, facts(state.report), [state]);

/** What ran, on what, how. */
export function facts({ summary }: Report): string {
  const { target } = summary;
  const inputs = [...new Set(summary.target.inputs.map((input) =>
    `${plain(input.method)} ${dtype(input.dtype)}[${input.shape.join(",")}]${input.upper_bound ? " (upper bound)" : ""}`))];
  const found = [
    inputs.slice(0, 3).join("; ") + (inputs.length > 3 ? ` and ${inputs.length - 3} more` : ""),
    [target.arch, target.isa].filter(Boolean).join(" "), target.loader && `loader ${target.loader}`,
    `ExecuTorch ${target.executorch}`, target.dry ? "dry run: counted bytes only" : "",
    target.threads === null ? "" : `${target.threads} threads`, ...target.backend_options,
  ].filter(Boolean).map((fact) => shorten(plain(String(fact)), 90));
  return found.join("  ·  ");
}

function dtype(name: string): string {
  const match = /^([a-z]+?)(\d+)$/.exec(name);
  return match ? `${DTYPES[match[1]!] ?? match[1]}${match[2]}` : plain(name);
}

const PARTS = [
  ["verdict", "Verdict"], ["findings", "Findings"], ["balance", "Balance"], ["timeline", "Timeline"], ["owners", "Owners"],
  ["arenas", "Arenas"], ["delegates", "Delegates"], ["operators", "Operators"], ["flame", "Flame graph"],
  ["told", "Told"], ["phases", "Phases"], ["issues", "Issues"],
] as const;

/** Links to the parts that are there. */
export const navigation = (parts: (Element | null)[], names: readonly (readonly [string, string])[] = PARTS): HTMLElement =>
  h("nav", { "aria-label": "Parts of the report" },
    ...names.filter(([id]) => parts.some((part) => part?.id === id)).map(([id, name]) => h("a", { href: `#${id}` }, name)));
