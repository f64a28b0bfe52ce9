// What the page is given: src/etmem/report/data.py names the same fields. All sizes are bytes, all times ns.

export interface CategoryBytes { category: string; private_bytes: number; file_bytes: number; blocks: number }
export interface OwnerBytes {
  owner: string; instance: string | null; private_bytes: number; file_bytes: number; categories: CategoryBytes[];
}
export interface Moment { time_ns: number; private_bytes: number; file_bytes: number; owners: OwnerBytes[] }
export interface Rss { start_bytes: number; end_bytes: number; peak_bytes: number | null }
export interface Phase {
  kind: string; program: number; method: string | null; iteration: number | null; start_ns: number; end_ns: number;
  failed: boolean; peak: Moment; peak_private: Moment; live_start: Moment; live_end: Moment; allocated_bytes: number;
  allocations: number; unowned_bytes: number; process_private_bytes: number; rss: Rss | null;
}
export interface Peak { phase: number; moment: Moment; owner_peaks: OwnerBytes[] }
export interface Arena {
  name: string; program: number; method: string | null; bytes: number; used_peak_bytes: number | null;
  allocations: number; users: { owner: string; instance: string | null; bytes: number; allocations: number }[];
}
export interface Delegate {
  backend: string; program: number; method: string; instance: number; blob_bytes: number; blob_released: string;
  named_data_bytes: number; init_peak_bytes: number; live_after_init_bytes: number;
  first_execute_growth_bytes: number; steady_bytes: number; execute_allocations: number; shared_with: string[];
}
export interface BalanceLine { line: string; bytes: number; source: string }
export interface Balance { at: string; rss_bytes: number; lines: BalanceLine[]; unaccounted_bytes: number }
export interface HighWater {
  at: string; high_water_bytes: number; counted_bytes: number; before_bytes: number; other_bytes: number;
}
export interface Finding {
  code: string; owner: string; bytes: number; saving_bytes: number | null; certainty: string; advice: string;
  detail: Record<string, unknown>;
}
export interface Issue { code: string; severity: string; message: string; hint: string }
export interface SourceLine { file: string; line: number; function: string; text: string; module: string; operator: string }
export interface InstructionBytes {
  program: number; method: string; chain: number | null; instruction: number | null; operator: string;
  instance: string | null; reason: string | null; at: string; inferences: number; live_before_bytes: number;
  live_after_bytes: number; peak_bytes: number; allocated_bytes: number; allocations: number; freed_bytes: number;
  temp_bytes: number; temp_peak_bytes: number; planned_live_bytes: number | null; sources: SourceLine[];
}
export interface PeakPart {
  at: string; program: number; method: string; instruction: number; operator: string; instance: string | null;
  bytes: number; blocks: number; running: boolean; sources: SourceLine[];
}
export interface DelegateOperator {
  owner: string; instance: string | null; operator: string; category: string; bytes: number; blocks: number;
}
export interface NamedScope {
  name: string; entered: number; allocated_bytes: number; allocations: number; peak_bytes: number; live_end_bytes: number;
}
export interface DeviceMemory {
  memory: string; name: string; owner: string; category: string; load_peak_bytes: number | null;
  inference_peak_bytes: number | null; steady_bytes: number | null; live_end_bytes: number; allocations: number;
}
export interface Counter { name: string; unit: string; samples: number; minimum: number; maximum: number; last: number; source: string }
export interface Label {
  name: string; owner: string; instance: string | null; category: string; regions: number; peak_bytes: number;
}
export interface ToldSeries { name: string; kind: string; unit: string; times_ns: number[]; values: number[] }
export interface Summary {
  target: {
    arch: string; cpu: string; isa: string; pointer_bytes: number; executorch: string; runtime: string; loader: string;
    iterations: number; dry: boolean; preset: string; backend_options: string[]; threads: number | null;
    inputs: { method: string; index: number; dtype: string; shape: number[]; upper_bound: boolean }[];
  };
  environment: { etmem: string; platform: string; allocator: string; command: string[]; exit_status: number | null };
  programs: { program: number; path: string | null; file_bytes: number | null; methods: string[] }[];
  phases: Phase[];
  peaks: { load: Peak | null; inference: Peak | null; steady: Peak | null };
  arenas: Arena[]; delegates: Delegate[]; balances: Balance[]; high_waters: HighWater[];
  findings: Finding[]; issues: Issue[];
  instructions: InstructionBytes[]; peak_parts: PeakPart[]; delegate_operators: DelegateOperator[];
  named_scopes: NamedScope[]; device_memory: DeviceMemory[]; counters: Counter[]; labels: Label[];
}
export interface Key { owner: string; instance: string | null; category: string; counted: boolean }
export interface Series { key: number; file: boolean; values: number[] }
export interface OperatorSeries { owner: string; operator: string; category: string; file: boolean; values: number[] }
export interface LiveBlocks {
  begin: number[]; end: number[]; bytes: number[]; key: number[]; file: number[]; place: number[]; places: string[][];
}
export interface Weight { bytes: number; blocks: number }
export interface StackRow {
  scope: number[]; native: number[]; key: number; file: boolean; live: Weight[]; allocated: Weight;
}
export interface Storage {
  mem_id: number; offset: number; bytes: number; first: number; last: number; label: string; kind: string;
  source: SourceLine | null;
}
export interface PlanMap {
  program: number; method: string; instructions: string[]; live_bytes: number[]; peak: number;
  buffers: [number, number][]; storages: Storage[];
}
export interface Word { word: string; kind: string; means: string; do: string }
export interface Report {
  version: number; title: string; trace: string; summary: Summary; keys: Key[];
  samples: { stamps: number[]; times_ns: number[]; series: Series[]; operators: OperatorSeries[] };
  spans: { phase: number; begin: number; end: number }[];
  marks: { name: string; stamp: number }[];
  rss: { stamp: number; time_ns: number; rss_bytes: number; high_water_bytes: number }[];
  blocks: LiveBlocks; stacks: { frames: string[]; rows: StackRow[] }; plans: PlanMap[];
  told: ToldSeries[]; words: Word[];
}

export interface Figures { private_bytes: number; file_bytes: number; blocks: number }
export interface PeakChange { at: string; a: Figures | null; b: Figures | null; delta_bytes: number; comparable: boolean }
export interface Change {
  at: string; owner: string; category: string; a: Figures; b: Figures; delta_bytes: number; share: number;
}
export interface InstanceChange { at: string; instance: string; a: Figures; b: Figures; delta_bytes: number }
export interface PhaseChange {
  kind: string; program: number; method: string | null; iteration: number | null; a_peak_bytes: number | null;
  b_peak_bytes: number | null; a_allocations: number | null; b_allocations: number | null; delta_bytes: number;
}
export interface ArenaChange {
  name: string; method: string | null; a_bytes: number | null; b_bytes: number | null; delta_bytes: number;
}
export interface OperatorChange {
  at: string; owner: string; operator: string; category: string; a: Figures; b: Figures; delta_bytes: number;
}
export interface BlockChange {
  at: string; owner: string; category: string; operator: string | null; requested_bytes: number; file: boolean;
  a_count: number; b_count: number; delta_bytes: number;
}
export interface Mismatch { code: string; a: string; b: string; effect: string }
export interface Reason { code: string; subject: string; delta_bytes: number | null; text: string }
export interface Diff {
  a: string; b: string; mismatches: Mismatch[]; peaks: PeakChange[]; changes: Change[]; instances: InstanceChange[];
  phases: PhaseChange[]; arenas: ArenaChange[]; operators: OperatorChange[]; blocks: BlockChange[];
  blocks_compared: string; reasons: Reason[]; beside: { what: string; a_bytes: number | null; b_bytes: number | null }[];
}
/** src/etmem/report/diff_html.py: two runs, of which only what timelines are drawn from is there. */
export interface DiffReport { version: number; title: string; diff: Diff; a: Report; b: Report; words: Word[] }

export interface FileChange { method: string | null; what: string; name: string; a: number | null; b: number | null; unit: string }
/** src/etmem/report/diff_program.py: two program files, nothing run. */
export interface ProgramsReport {
  version: number; title: string; programs: { a: string; b: string; changes: FileChange[] }; words: Word[];
}

/** Base64 of zlib of JSON. */
export async function decode(packed: string): Promise<Report | DiffReport | ProgramsReport> {
  const binary = atob(packed.trim());
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return (await new Response(stream).json()) as Report | DiffReport | ProgramsReport;
}
