// Elements from values. Text goes in as text nodes only: names from files are never markup.

type Child = Node | string | null | undefined | false;
type Handler = (event: never) => void;
export type Props = Record<string, string | number | boolean | null | undefined | Handler>;

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag) as SVGElementTagNameMap[K], props, children);
}

function fill<E extends Element>(element: E, props: Props, children: Child[]): E {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value as unknown as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  put(element, ...children);
  return element;
}

export function put(parent: Element, ...children: Child[]): void {
  for (const child of children) if (child !== null && child !== undefined && child !== false) parent.append(child);
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

/** A button that says whether it is pressed; one of a group. */
export function choices<T extends string>(
  label: string, options: readonly (readonly [T, string])[], chosen: T, choose: (value: T) => void,
): HTMLElement {
  const group = h("div", { class: "choices", role: "group", "aria-label": label });
  const mark = (value: T) => {
    for (const button of group.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset["value"] === value));
  };
  for (const [value, text] of options)
    group.append(h("button", { type: "button", "data-value": value, click: () => { mark(value); choose(value); } }, text));
  mark(chosen);
  return group;
}
