// One floating note for all charts.

import { h, replace } from "./dom";

const note = h("div", { class: "tooltip", role: "status", hidden: true });

export const tooltipElement = (): HTMLElement => note;

export function showTooltip(event: { clientX: number; clientY: number }, ...content: (Node | string)[]): void {
  replace(note, ...content);
  note.hidden = false;
  const { width, height } = note.getBoundingClientRect();
  const left = event.clientX + 16 + width > innerWidth ? event.clientX - width - 16 : event.clientX + 16;
  const top = Math.min(event.clientY + 12, innerHeight - height - 8);
  note.style.left = `${Math.max(left, 8)}px`;
  note.style.top = `${Math.max(top, 8)}px`;
}

export function hideTooltip(): void { note.hidden = true; }
