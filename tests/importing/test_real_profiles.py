"""Profiles that gperftools took of a run, against what etmem itself counts of the same program."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

from etmem.analysis.symbols import read_symbols
from etmem.capture import executorch
from etmem.importing import import_profile, importing, naming, pprof
from etmem.importing.naming import file_name
from etmem.model.sampled import SampledProfile
from etmem.model.words import IssueCode
from etmem.report.demangle import demangle
from etmem.report.protobuf import block, number, packed
from tests.accuracy.captures import category_bytes, etmem, owner_bytes, profile
from tests.importing.recording import convert, libraries, record, record_program
from tests.models.registry import model_path

XNNPACK = "delegate:XnnpackBackend"
PAGES = 16 * 1024
"""Small blocks that one counts and the other does not: tables that a function allocates beside its weights."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heap")
    dump = record(model_path("convs"), folder)
    convert(dump, folder / "bare.pb.gz", "-symbolize=none")
    return folder


@pytest.fixture(scope="module")
def imported(folder: Path) -> SampledProfile:
    return import_profile(folder / "bare.pb.gz", symbols=libraries())


def live(found: SampledProfile) -> Counter[tuple[str, str]]:
    """Live bytes by owner and category."""
    sums: Counter[tuple[str, str]] = Counter()
    for owner in found.owners:
        for part in owner.categories:
            sums[owner.owner, part.category.value] += part.figures.live_bytes
    return sums


def test_owners_and_categories_are_those_that_etmem_counts(imported: SampledProfile) -> None:
    """GIVEN the peak of inference, taken by both THEN large buffers are equal to the byte, and sums within 0.1 %."""
    peak = profile("convs").peaks.inference
    assert peak is not None
    found = live(imported)
    assert found[XNNPACK, "operator_buffers"] == category_bytes(peak.moment, XNNPACK, "operator_buffers") == 28_313_712
    for owner, category in (
        (XNNPACK, "workspace"), (XNNPACK, "packed_weights"), (XNNPACK, "metadata"), ("executorch", "planned_memory"),
        ("executorch", "method_allocator"),
    ):  # fmt: skip
        assert abs(found[owner, category] - category_bytes(peak.moment, owner, category)) < PAGES, (owner, category)
    totals = {owner.owner: owner.figures.live_bytes for owner in imported.owners}
    assert list(totals) == [XNNPACK, "executorch", "host"]
    for owner in (XNNPACK, "executorch"):
        assert totals[owner] == pytest.approx(owner_bytes(peak.moment, owner), rel=0.001)
    # The caller's input and output: 786,432 bytes, which no call stack tells from the application's own.
    assert 786_432 <= found["host", "other"] <= 786_432 + PAGES
    assert imported.total.live_bytes == sum(found.values())


def test_phases_and_operators_follow_from_call_stacks(imported: SampledProfile) -> None:
    (xnnpack, *_) = imported.owners
    phases = {str(part.category): part.phase for part in xnnpack.categories}
    assert (phases["packed_weights"], phases["operator_buffers"]) == ("method_load", "inference")
    largest = imported.stacks[0]
    assert (largest.operator, largest.figures.live_blocks) == ("convolution2d_nhwc_f32", 6)
    assert largest.frames[-2] == "xnn_reshape_convolution2d_nhwc_f32"


def named(bare: Path, output: Path) -> Path:
    """The same samples with functions in the profile, demangled, as traceconv writes them."""
    profile = importing._read(bare, None)
    names = naming.names(profile, libraries())
    strings, functions = {"": 0, "space": 1, "bytes": 2}, {}
    samples = []
    for sample in profile.samples:
        found = [demangle(name) for name in names.of(sample.stack)]
        for name in found:
            functions.setdefault(name, len(functions) + 1)
        samples.append(block(2, packed(1, [functions[name] for name in found]) + packed(2, [sample.live_bytes])))
    tables = []
    for name, place in functions.items():
        text = strings.setdefault(name, len(strings))
        tables.append(block(4, number(1, place) + block(4, number(1, place))))
        tables.append(block(5, number(1, place) + number(2, text)))
    tables += [block(6, text.encode()) for text in strings]
    output.write_bytes(block(1, number(1, 1) + number(2, 2)) + b"".join(samples + tables))
    return output


def test_names_in_the_profile_will_do(folder: Path, imported: SampledProfile) -> None:
    """GIVEN a profile with demangled names THEN no library is needed, and owners and C functions' categories hold."""
    found = import_profile(named(folder / "bare.pb.gz", folder / "named.pb"))
    assert not found.modules
    totals = [{owner.owner: owner.figures.live_bytes for owner in each.owners} for each in (found, imported)]
    assert totals[0] == totals[1]
    assert live(found) == live(imported)


def test_without_names_no_owner_is_shown(folder: Path) -> None:
    found = import_profile(folder / "bare.pb.gz")
    assert [owner.owner for owner in found.owners] == ["unknown"]
    assert [issue.code for issue in found.issues] == [IssueCode.SYMBOLS_MISSING]
    assert found.total.live_bytes > 50 * 2**20


def to_heapprofd(bare: Path) -> bytes:
    """The same samples as heapprofd would tell them: interned, addresses relative to the module, in parts."""
    profile = importing._read(bare, None)
    trace = perfetto.Trace()
    first = trace.packet.add(trusted_packet_sequence_id=3)
    interned = first.interned_data
    ids: dict[object, int] = {}

    def number(value: object) -> tuple[int, bool]:
        fresh = value not in ids
        return ids.setdefault(value, len(ids) + 1), fresh

    def add_text(table, text: bytes) -> int:
        iid, fresh = number((id(table), text))
        if fresh:
            table.add(iid=iid, str=text)
        return iid

    known = {library.name: library for library in libraries()}
    stacks = {}
    for sample in profile.samples:
        frames = []
        for frame in reversed(sample.stack):
            iid, fresh = number(frame)
            if fresh:
                module = frame.module
                assert module is not None
                mapping, new = number(module)
                if new:
                    parts = [add_text(interned.mapping_paths, part.encode()) for part in module.path.split("/") if part]
                    interned.mappings.add(iid=mapping, path_string_ids=parts)
                library = known.get(file_name(module))
                table = read_symbols(str(library)) if library else None
                address = table.address(frame.address) if table else frame.address
                interned.frames.add(iid=iid, mapping_id=mapping, rel_pc=address)
            frames.append(iid)
        stacks[sample], _ = number(sample)
        interned.callstacks.add(iid=stacks[sample], frame_ids=frames)
    half = len(profile.samples) // 2
    # A dump that a later one replaces, then that one in two parts.
    for samples, continued in (
        (profile.samples[:1], False), (profile.samples[:half], True), (profile.samples[half:], False),
    ):  # fmt: skip
        packet = trace.packet.add(trusted_packet_sequence_id=3).profile_packet
        packet.continued = continued
        dump = packet.process_dumps.add(pid=42, heap_name="libc.malloc", sampling_interval_bytes=4096)
        for sample in samples:
            freed, blocks = sample.allocated_bytes - sample.live_bytes, sample.allocated_blocks - sample.live_blocks
            dump.samples.add(
                callstack_id=stacks[sample], self_allocated=sample.allocated_bytes, self_freed=freed,
                alloc_count=sample.allocated_blocks, free_count=blocks,
            )  # fmt: skip
    return trace.SerializeToString()


def test_heapprofd_s_own_form(folder: Path, imported: SampledProfile) -> None:
    """GIVEN the same samples in a Perfetto trace THEN owners, categories and totals are the same."""
    path = folder / "heap.perfetto-trace"
    path.write_bytes(to_heapprofd(folder / "bare.pb.gz"))
    found = import_profile(path, symbols=libraries())
    assert (found.format, found.process, found.interval_bytes) == ("heapprofd", "process 42", 4096)
    assert live(found) == live(imported)
    assert found.total == imported.total
    assert import_profile(path, symbols=libraries(), process=42).total == imported.total


def test_the_command(folder: Path) -> None:
    """Every form says that it is sampled, and JSON keeps to its schema."""
    options = [part for library in libraries() for part in ("--symbols", library)]
    data, stacks = folder / "run.json", folder / "run.folded"
    ran = etmem("import", folder / "bare.pb.gz", *options, "--json", data, "--collapsed", stacks, "--full")
    assert ran.code == 0, ran.err
    assert "SAMPLED, every allocation" in ran.out
    assert "It tells no peak of load" in " ".join(ran.out.split())
    assert "LARGEST CALL STACKS" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    schema = json.loads((Path(__file__).parents[2] / "docs/reference/sampled.schema.json").read_text())
    written = json.loads(data.read_text())
    jsonschema.validate(written, schema)
    assert written["sampled"] is True
    lines = [line.rpartition(" ") for line in stacks.read_text().splitlines()]
    assert all(path.startswith("sampled;") for path, _, _ in lines)
    assert sum(int(size) for _, _, size in lines) == written["total"]["live_bytes"]
    bare = etmem("import", folder / "bare.pb.gz")
    assert bare.code == 4
    assert "symbols_missing" in bare.out


def test_truncated_and_changed_files_are_refused_or_read(folder: Path) -> None:
    """No damage to a profile ends in anything but a result or one clear error."""
    data = importing.gzip.decompress((folder / "bare.pb.gz").read_bytes())
    for at in range(0, len(data), max(len(data) // 80, 1)):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]):
            (folder / "damaged").write_bytes(damaged)
            try:
                import_profile(folder / "damaged")
            except importing.InputError as error:
                assert "is no heap profile" in error.message  # noqa: PT017 -- either outcome is right
            except importing.UsageError as error:
                assert "process" in error.message  # noqa: PT017
    assert pprof.parse(data).samples


def test_a_static_program_that_knows_nothing_of_etmem(tmp_path: Path) -> None:
    """GIVEN the runtime linked statically into an unstripped program THEN owner and phase follow from its symbols."""
    found = executorch.find()
    source = Path(__file__).parents[1] / "clients/static_runtime"
    cmake = Path(__file__).parents[2] / "native/cmake"
    options = (f"-DETMEM_CMAKE={cmake}", f"-DEXECUTORCH_INCLUDE={found.include}")
    for command in (["-S", source, "-B", tmp_path, *options], ["--build", tmp_path, "--target", "plain"]):
        subprocess.run(["cmake", *command], check=True, capture_output=True)
    program = tmp_path / "plain"
    dump = record_program((program, "-", "3"), tmp_path)
    imported = import_profile(
        convert(dump, tmp_path / "heap.pb.gz", "-symbolize=none", program=program), symbols=[program]
    )
    (owner,) = imported.owners
    assert (owner.owner, owner.figures.live_bytes) == ("delegate:KeepingBackend", 300_000)
    assert [part.phase for part in owner.categories] == ["method_load"]
