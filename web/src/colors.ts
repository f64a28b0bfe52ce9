// One fixed colour for each owner, in every report; the same for categories. CSS holds the two themes of neutrals.

const OWNERS: Record<string, string> = {
  executorch: "#3f7fd1",
  host: "#8b95a3",
  profiler: "#b9c0c9",
  "delegate:XnnpackBackend": "#e58a2b",
  "delegate:OpenvinoBackend": "#8a63d2",
  "delegate:CoreMLBackend": "#d4588f",
  "delegate:VulkanBackend": "#c8503c",
  "delegate:QnnBackend": "#2f9e75",
  "delegate:EthosUBackend": "#16a0a8",
  "delegate:MPSBackend": "#a0743c",
};
const OTHERS = ["#b0a021", "#6b8f2a", "#5a6acf", "#c46bb8", "#2a8fb5", "#b8694f", "#4d9f4d", "#9a5b7f"];

const CATEGORIES: Record<string, string> = {
  program: "#6f8fb3", constants: "#94b4d8", planned_memory: "#3f7fd1", method_allocator: "#2a5a9c",
  temp_allocator: "#7a6fd0", kernel_scratch: "#a58be0", original_weights: "#f0b45c", packed_weights: "#e07b28",
  workspace: "#35a07b", operator_buffers: "#c94f63", metadata: "#9aa3ad", libraries: "#b59a78",
  inputs_outputs: "#5fb3c4", stacks: "#b0b8a0", other: "#c3c8ce",
};

/** Backends that are not listed share eight colours, each always the same one. */
export function ownerColor(owner: string): string {
  return OWNERS[owner] ?? OTHERS[hash(owner) % OTHERS.length]!;
}

export const categoryColor = (category: string): string => CATEGORIES[category] ?? "#c3c8ce";

/** Instances of one backend: its colour, lighter and darker in turn. */
export function instanceColor(owner: string, index: number): string {
  const shift = [0, 18, -14, 30, -26, 10][index % 6]!;
  return shift === 0 ? ownerColor(owner) : `color-mix(in oklab, ${ownerColor(owner)}, ${shift > 0 ? "white" : "black"} ${Math.abs(shift)}%)`;
}

/** Operators of one owner: its colour with a second one in it, by the name, so that two runs show it alike. */
export function operatorColor(owner: string, operator: string): string {
  const value = hash(operator);
  return `color-mix(in oklab, ${ownerColor(owner)}, ${OTHERS[value % OTHERS.length]} ${15 + 20 * ((value >>> 8) % 4)}%)`;
}

function hash(text: string): number {
  let value = 2166136261;
  for (const character of text) value = Math.imul(value ^ character.codePointAt(0)!, 16777619) >>> 0;
  return value;
}

const LINES: Record<string, string> = {
  "program file": "#6f8fb3", "other libraries": "#b59a78", stacks: "#b0b8a0", "retained by malloc": "#9aa3ad",
};

export function lineColor(line: string): string {
  if (line.startsWith("libraries of ")) return `color-mix(in oklab, ${ownerColor(`delegate:${line.slice(13)}`)}, white 45%)`;
  return LINES[line] ?? ownerColor(line);
}
