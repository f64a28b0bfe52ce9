"""Summaries built by hand: the three of the documented first screens, and the odd ones."""

from __future__ import annotations

from dataclasses import replace

from etmem.model.summary import (
    Arena,
    ArenaUser,
    Balance,
    BalanceLine,
    CategoryBytes,
    DelegateInfo,
    Environment,
    Finding,
    HighWater,
    InputSpec,
    Issue,
    LargestBlock,
    Moment,
    OwnerBytes,
    Peak,
    Peaks,
    Phase,
    ProgramInfo,
    Rss,
    Summary,
    Target,
)
from etmem.model.words import (
    EXECUTORCH,
    HOST,
    Category,
    Certainty,
    FindingCode,
    IssueCode,
    PhaseKind,
    Severity,
    Source,
    is_counted,
)

MIB = 1024 * 1024
XNNPACK = "delegate:XnnpackBackend"
C = Category


def mib(value: float) -> int:
    return round(value * MIB)


def target(*inputs: InputSpec, **changes: object) -> Target:
    base = Target(
        arch="x86_64",
        cpu="Intel(R) Xeon(R) Processor",
        isa="avx512",
        pointer_bytes=8,
        executorch="1.5.1",
        runtime="native",
        loader="mmap",
        iterations=2,
        dry=False,
        preset="wheel",
        backend_options=(),
        threads=None,
        inputs=inputs,
    )
    return replace(base, **changes)


def environment(**changes: object) -> Environment:
    base = Environment(
        etmem="0.1.0",
        python="3.11.2",
        platform="Linux-6.1.0-x86_64-with-glibc2.36",
        kernel="6.1.0",
        libc="glibc 2.36",
        allocator="glibc",
        page_bytes=4096,
        memlock_limit_bytes=8 * MIB,
        command=("etmem-runner", "mlp.pte"),
        exit_status=0,
    )
    return replace(base, **changes)


def category(kind: Category, private: int = 0, file: int = 0, blocks: int = 1) -> CategoryBytes:
    return CategoryBytes(kind, private, file, blocks)


def owner(name: str, instance: str | None, *categories: CategoryBytes) -> OwnerBytes:
    return OwnerBytes(
        name,
        instance,
        sum(c.private_bytes for c in categories),
        sum(c.file_bytes for c in categories),
        categories,
    )


def moment(*owners: OwnerBytes, time_ns: int = 0) -> Moment:
    counted = [o for o in owners if is_counted(o.owner)]
    private = sum(o.private_bytes for o in counted)
    return Moment(time_ns, private, sum(o.file_bytes for o in counted), owners)


EMPTY = moment()


def phase(kind: PhaseKind, method: str | None, peak: Moment, rss: Rss | None = None, **changes: object) -> Phase:
    base = Phase(
        kind=kind,
        program=0,
        method=method,
        iteration=None,
        start_ns=0,
        end_ns=1_500_000,
        failed=False,
        peak=peak,
        peak_private=peak,
        live_start=EMPTY,
        live_end=peak,
        allocated_bytes=peak.private_bytes,
        allocations=42,
        unowned_bytes=0,
        process_private_bytes=peak.private_bytes + 100_000,
        rss=rss,
    )
    return replace(base, **changes)


def delegate(
    instance: int, method: str = "forward", backend: str = "XnnpackBackend", **changes: object
) -> DelegateInfo:
    base = DelegateInfo(
        backend=backend,
        program=0,
        method=method,
        instance=instance,
        blob_bytes=2000,
        blob_released="init",
        named_data_bytes=67_141_632,
        init_peak_bytes=134_300_000,
        live_after_init_bytes=67_180_000,
        first_execute_growth_bytes=33_000,
        steady_bytes=67_213_000,
        execute_allocations=0,
        shared_with=(),
    )
    return replace(base, **changes)


def tensors(size: int) -> OwnerBytes:
    return owner(HOST, None, category(C.INPUTS_OUTPUTS, size), category(C.OTHER, 80_000))


def _instance(index: int) -> str:
    return f"forward/XnnpackBackend[{index}]"


def mlp() -> Summary:
    packed = category(C.PACKED_WEIGHTS, 4 * 16_785_408, blocks=4)
    runtime = owner(EXECUTORCH, None, category(C.PLANNED_MEMORY, 16_448), category(C.METHOD_ALLOCATOR, 577, blocks=13))
    loading = moment(
        owner(
            XNNPACK,
            _instance(0),
            packed,
            category(C.ORIGINAL_WEIGHTS, file=67_141_632),
            category(C.METADATA, 41_000, blocks=90),
        ),
        runtime,
        time_ns=20_000_000,
    )
    running = moment(
        owner(XNNPACK, _instance(0), packed, category(C.WORKSPACE, 24_000), category(C.METADATA, 8_000, blocks=60)),
        runtime,
        tensors(16_384),
        time_ns=60_000_000,
    )
    base, high, after = mib(5.0), mib(133.7), mib(70.0)
    phases = (
        phase(PhaseKind.PROGRAM_LOAD, None, EMPTY, Rss(base, base + 8192, base + 8192)),
        phase(PhaseKind.METHOD_LOAD, "forward", loading, Rss(base + 8192, mib(69.7), high), end_ns=40_000_000),
        phase(PhaseKind.INFERENCE, "forward", running, Rss(mib(69.8), after, after), iteration=0),
        phase(PhaseKind.INFERENCE, "forward", running, Rss(after, mib(70.1), mib(70.1)), iteration=1, allocations=0),
        phase(PhaseKind.UNLOAD, "forward", running, Rss(mib(70.1), mib(5.4), mib(70.1)), live_end=EMPTY),
    )
    return Summary(
        target=target(InputSpec("forward", 0, "float32", (1, 2048))),
        environment=environment(),
        programs=(ProgramInfo(0, "models/mlp.pte", 67_158_000, ("forward",)),),
        phases=phases,
        peaks=Peaks(
            Peak(1, loading, loading.owners), Peak(2, running, running.owners), Peak(3, running, running.owners)
        ),
        arenas=(
            Arena("planned[1]", 0, "forward", 16_448, 16_448, 1),
            Arena(
                "method_allocator",
                0,
                "forward",
                577,
                577,
                13,
                (ArenaUser(EXECUTORCH, None, 513, 12), ArenaUser(XNNPACK, _instance(0), 64, 1)),
            ),
            Arena("temp_allocator", 0, "forward", 0, 0, 0),
        ),
        delegates=(delegate(0),),
        largest_blocks=(
            LargestBlock(
                "load", XNNPACK, _instance(0), C.ORIGINAL_WEIGHTS, PhaseKind.METHOD_LOAD, 67_141_632, 1, file=True
            ),
            LargestBlock(
                "load", XNNPACK, _instance(0), C.PACKED_WEIGHTS, PhaseKind.METHOD_LOAD, 16_785_408, 4, file=False
            ),
            LargestBlock("inference", EXECUTORCH, None, C.PLANNED_MEMORY, None, 16_448, 1, file=False),
        ),
        balances=(
            Balance(
                "load",
                mib(69.7),
                (
                    BalanceLine(XNNPACK, mib(64.05), Source.COUNTED),
                    BalanceLine(EXECUTORCH, mib(0.02), Source.COUNTED),
                    BalanceLine("other libraries", mib(5.4), Source.MEASURED),
                ),
                mib(69.7) - mib(64.05) - mib(0.02) - mib(5.4),
            ),
            Balance(
                "last_inference",
                mib(70.11),
                (
                    BalanceLine(XNNPACK, mib(64.06), Source.COUNTED),
                    BalanceLine(EXECUTORCH, mib(0.02), Source.COUNTED),
                    BalanceLine(HOST, mib(0.01), Source.COUNTED),
                    BalanceLine("libraries of XnnpackBackend", mib(2.0), Source.MEASURED),
                    BalanceLine("other libraries", mib(3.61), Source.MEASURED),
                    BalanceLine("stacks", mib(0.11), Source.MEASURED),
                    BalanceLine("retained by malloc", mib(0.3), Source.MEASURED),
                ),
                mib(70.11) - sum(mib(x) for x in (64.06, 0.02, 0.01, 2.0, 3.61, 0.11, 0.3)),
            ),
        ),
        high_waters=(
            HighWater("load", high, mib(128.1), mib(5.0), high - mib(128.1) - mib(5.0)),
            HighWater("inference", mib(70.1), mib(64.1), mib(5.5), mib(70.1) - mib(64.1) - mib(5.5)),
        ),
        findings=(
            Finding(
                FindingCode.DOUBLE_WEIGHTS,
                XNNPACK,
                67_141_632,
                33_000_000,
                Certainty.ESTIMATED,
                "original and packed copies live together until XnnpackBackend[0] ends its init. The largest delegate "
                "sets the load peak: in three delegates the same weights peak at 96.1, which saves 32.",
                {"delegates": 1},
            ),
        ),
        issues=(),
    )


def _convs(instances: int, planned: int, file_bytes: int, findings: tuple[Finding, ...]) -> Summary:
    base = mlp()
    share = instances > 1
    per_instance = [
        owner(
            XNNPACK,
            _instance(i),
            category(C.PACKED_WEIGHTS, 196_444 // instances, blocks=6 // instances),
            category(C.METADATA, 12_000 // instances, blocks=9),
        )
        for i in range(instances)
    ]
    runtime = owner(EXECUTORCH, None, category(C.PLANNED_MEMORY, planned), category(C.METHOD_ALLOCATOR, 1_041))
    originals = owner(XNNPACK, _instance(0), category(C.ORIGINAL_WEIGHTS, file=file_bytes))
    loading = moment(*per_instance, originals, runtime)
    buffers = [
        owner(XNNPACK, _instance(i), category(C.OPERATOR_BUFFERS, 6 * 4_718_952 // instances, blocks=6 // instances))
        for i in range(instances)
    ]
    workspace = owner(XNNPACK, None if share else _instance(0), category(C.WORKSPACE, 16_777_248))
    running = moment(*per_instance, *buffers, workspace, runtime, tensors(786_432 + 16_000))
    start = mib(5)
    phases = (
        phase(PhaseKind.PROGRAM_LOAD, None, EMPTY, Rss(start, start, start)),
        phase(PhaseKind.METHOD_LOAD, "forward", loading, Rss(start, mib(14.8), mib(14.8))),
        phase(PhaseKind.INFERENCE, "forward", running, Rss(mib(15), mib(59), mib(59.1)), iteration=0),
        phase(PhaseKind.INFERENCE, "forward", running, Rss(mib(59), mib(59), mib(59.1)), iteration=1),
    )
    shared = tuple(_instance(i) for i in range(instances)) if share else ()
    return replace(
        base,
        target=target(InputSpec("forward", 0, "float32", (1, 3, 256, 256))),
        programs=(ProgramInfo(0, "convs_three_delegates.pte" if share else "convs.pte", 195_072, ("forward",)),),
        phases=phases,
        peaks=Peaks(Peak(1, loading, ()), Peak(2, running, ()), Peak(3, running, ())),
        delegates=tuple(delegate(i, shared_with=shared) for i in range(instances)),
        balances=(),
        high_waters=(
            HighWater("load", mib(14.8), mib(9.2), start, mib(0.6)),
            HighWater("inference", mib(59.1), mib(52), mib(5.8), mib(59.1) - mib(52) - mib(5.8)),
        ),
        findings=findings,
    )


def convs() -> Summary:
    return _convs(
        1,
        9_175_104,
        195_072,
        (
            Finding(
                FindingCode.FIRST_INFERENCE_GROWS,
                XNNPACK,
                mib(43.0),
                None,
                Certainty.EXACT,
                "appears in the first inference and stays: a check after load sees 9.2 of 52.0.",
            ),
            Finding(
                FindingCode.INDIRECTION_BUFFERS,
                XNNPACK,
                6 * 4_718_952,
                None,
                Certainty.EXACT,
                "6 convolutions, 4,718,952 B each: 256x256 outputs, 9 taps, 8 B pointers, tile 7 "
                "(avx512; 4,718,736 on cortex-a76).",
            ),
        ),
    )


def convs_three_delegates() -> Summary:
    return _convs(
        3,
        16_777_280,
        195_072,
        (
            Finding(
                FindingCode.GRAPH_BREAK,
                EXECUTORCH,
                16_777_280,
                7_602_176,
                Certainty.EXACT,
                "aten.cumsum x2 cuts the model into 3 delegates; what crosses a cut lives in planned memory: 16.0 of "
                "its 16.0 MiB. Uncut: 8.8, saves 7.25.",
            ),
        ),
    )


def portable() -> Summary:
    """No delegate: file-backed constants to the end, so the last column has marks."""
    runtime = owner(
        EXECUTORCH,
        None,
        category(C.CONSTANTS, file=67_141_632),
        category(C.PLANNED_MEMORY, 16_793_600),
        category(C.PROGRAM, file=40_960),
        category(C.METHOD_ALLOCATOR, 4_573, blocks=128),
    )
    live = moment(runtime)
    base = mlp()
    return replace(
        base,
        programs=(ProgramInfo(0, "mlp_portable.pte", 67_158_000, ("forward",)),),
        peaks=Peaks(Peak(1, live, ()), Peak(2, live, ()), Peak(3, live, ())),
        delegates=(),
        findings=(),
        balances=(),
    )


def llama() -> Summary:
    """24 delegates in one method, two more of OpenVINO, 16 iterations and constant methods."""
    weights = [
        owner(
            XNNPACK, _instance(i), category(C.PACKED_WEIGHTS, 8 * MIB, blocks=7), category(C.METADATA, 9000, blocks=40)
        )
        for i in range(24)
    ]
    openvino = [
        owner("delegate:OpenvinoBackend", f"forward/OpenvinoBackend[{i}]", category(C.METADATA, 5 * MIB, blocks=53_000))
        for i in (24, 25)
    ]
    workspace = owner(XNNPACK, None, category(C.WORKSPACE, 3 * MIB))
    live = moment(
        *weights, *openvino, workspace, owner(EXECUTORCH, None, category(C.PLANNED_MEMORY, 32 * MIB, blocks=2))
    )
    base = mlp()
    tokens = tuple(
        phase(PhaseKind.INFERENCE, "forward", live, Rss(mib(300), mib(300), None), iteration=i) for i in range(16)
    )
    shared = tuple(_instance(i) for i in range(24))
    return replace(
        base,
        target=target(
            InputSpec("forward", 0, "int64", (1, 1)), InputSpec("forward", 1, "int64", (1,), upper_bound=True)
        ),
        programs=(
            ProgramInfo(
                0,
                "llama.pte",
                214_000_000,
                ("forward",),
                ("get_bos_id", "get_eos_ids", "get_max_seq_len", "get_vocab_size"),
            ),
        ),
        phases=(phase(PhaseKind.METHOD_LOAD, "forward", live, Rss(mib(5), mib(290), None)), *tokens),
        peaks=Peaks(Peak(0, live, ()), Peak(1, live, ()), Peak(16, live, ())),
        delegates=(
            *(delegate(i, shared_with=shared, named_data_bytes=8 * MIB) for i in range(24)),
            delegate(24, backend="OpenvinoBackend"),
            delegate(25, backend="OpenvinoBackend"),
        ),
        balances=(),
        high_waters=(),
    )


def two_methods() -> Summary:
    one = owner(XNNPACK, "prefill/XnnpackBackend[0]", category(C.PACKED_WEIGHTS, 4 * 16_785_408, blocks=4))
    two = owner(XNNPACK, "decode/XnnpackBackend[0]", category(C.PACKED_WEIGHTS, 4 * 16_785_408, blocks=4))
    arena = owner(EXECUTORCH, None, category(C.PLANNED_MEMORY, 1_048_640 + 16_448, blocks=2))
    live = moment(one, two, arena)
    base = mlp()
    return replace(
        base,
        target=target(
            InputSpec("prefill", 0, "float32", (64, 2048)),
            InputSpec("decode", 0, "float32", (1, 2048)),
            backend_options=("XnnpackBackend:weight_cache_enabled=true",),
            preset="android",
        ),
        programs=(ProgramInfo(0, "mlp_two_methods.pte", 67_200_000, ("prefill", "decode")),),
        phases=(
            phase(PhaseKind.METHOD_LOAD, "prefill", live),
            phase(PhaseKind.METHOD_LOAD, "decode", live),
            phase(PhaseKind.INFERENCE, "prefill", live, iteration=0),
            phase(PhaseKind.INFERENCE, "decode", live, iteration=0),
        ),
        peaks=Peaks(Peak(1, live, ()), Peak(2, live, ()), Peak(3, live, ())),
        delegates=(delegate(0, "prefill"), delegate(0, "decode")),
        balances=(),
        high_waters=(),
    )


def dry() -> Summary:
    base = mlp()
    return replace(
        base,
        target=replace(base.target, dry=True),
        phases=tuple(replace(p, rss=None) for p in base.phases),
        balances=(),
        high_waters=(),
        issues=(
            Issue(
                IssueCode.DRY_OUTPUTS_INVALID,
                Severity.INFO,
                "outputs are not valid; 2 operators still computed: aten::cumsum.out",
                "run without --dry for real outputs",
            ),
        ),
    )


def failed() -> Summary:
    """The method's load failed: no inference, an error with a hint."""
    base = mlp()
    load = replace(base.phases[1], failed=True)
    return replace(
        base,
        phases=(base.phases[0], load),
        peaks=Peaks(base.peaks.load, None, None),
        balances=(),
        high_waters=base.high_waters[:1],
        findings=(),
        environment=environment(exit_status=1),
        issues=(
            Issue(
                IssueCode.PROGRAM_FAILED,
                Severity.ERROR,
                "loading method forward failed: operator my::op.out is not registered (error 0x14)",
                "give the library that registers it with --library",
            ),
        ),
    )


def withheld() -> Summary:
    """A run whose hooks were not reached: no figure may look like a zero."""
    base = mlp()
    return replace(
        base,
        phases=(),
        peaks=Peaks(None, None, None),
        arenas=(),
        delegates=(),
        largest_blocks=(),
        balances=(),
        high_waters=(),
        findings=(),
        issues=(
            Issue(
                IssueCode.HOOK_NOT_REACHED,
                Severity.ERROR,
                "the program has delegates but none was entered",
                "the runtime may be linked statically; rebuild with -DEXECUTORCH_BUILD_SHARED=ON",
            ),
        ),
    )


def hostile() -> Summary:
    """Names from a file that try to move the cursor, and very long ones."""
    base = mlp()
    evil = "\x1b[2J\x1b[31mfor\nward\u202e" + "x" * 300
    info = replace(base.delegates[0], method=evil, backend="Evil\x1b]0;pwned\x07" + "B" * 200)
    entry = owner(f"delegate:{info.backend}", f"{evil}/{info.backend}[0]", category(C.PACKED_WEIGHTS, 64 * MIB))
    live = moment(entry)
    return replace(
        base,
        target=target(InputSpec(evil, 0, "flo\x1bat32", (1,) * 60), cpu=evil, isa=evil, loader=evil, executorch=evil),
        environment=environment(command=(evil, "\x00"), platform=evil),
        programs=(ProgramInfo(0, "/tmp/\x1b[1m" + "m" * 400 + ".pte", 123, (evil,), (evil, evil)),),
        phases=tuple(replace(p, method=evil, peak=live) for p in base.phases[1:]),
        peaks=Peaks(Peak(0, live, (entry,)), Peak(1, live, (entry,)), Peak(2, live, (entry,))),
        arenas=tuple(replace(a, method=evil, name=evil) for a in base.arenas),
        delegates=(info, replace(info, method=evil + "2")),
        balances=(Balance("last_inference", 10, (BalanceLine(evil, 10, Source.COUNTED),), 0),),
        findings=(replace(base.findings[0], advice=evil * 9),),
        issues=(Issue(IssueCode.PROGRAM_FAILED, Severity.ERROR, evil * 9, evil * 9),),
    )


EVERY = {
    sample.__name__: sample
    for sample in (mlp, convs, convs_three_delegates, portable, llama, two_methods, dry, failed, withheld, hostile)
}
