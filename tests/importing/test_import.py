"""Owners by call stack, symbols by build id, and what is refused."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest

from etmem.analysis.by_stack import backend_of
from etmem.analysis.function_names import qualified
from etmem.delegates import descriptions
from etmem.importing import import_profile
from etmem.importing.owning import place
from etmem.importing.wire import MalformedError, Message
from etmem.model.errors import InputError, UsageError
from etmem.model.words import Category, PhaseKind
from etmem.report.protobuf import block, number, packed, text, varint
from tools.gen_sampled_schema import PATH
from tools.gen_sampled_schema import text as schema_text

EXECUTE = "_ZN10executorch7runtime6Method7executeEv"
LOAD = "_ZNK10executorch7runtime7Program11load_methodEPKcPNS0_13MemoryManagerE"
XNN_INIT = "_ZNK10executorch8backends14XnnpackBackend4initERNS_7runtime18BackendInitContextEPNS2_14FreeableBufferE"
QNN = "_ZNK10executorch8backends3qnn20QnnExecuTorchBackend7executeERNS_7runtime23BackendExecutionContextEPv"
MALLOC = "_ZN10executorch9extension21MallocMemoryAllocator8allocateEmm"
MODULE = "executorch::extension::module::Module::load_method(std::string const&)"
GET = "_ZNK10executorch9extension17FlatTensorDataMap8get_dataESt17basic_string_viewIcSt11char_traitsIcEE"
FILE = "_ZNK10executorch9extension14FileDataLoader4loadEmmRKNS_7runtime10DataLoader11SegmentInfoE"

STACKS = [
    (["xnn_create_convolution2d_nhwc_f32", XNN_INIT, LOAD, "main"],
     ("delegate:XnnpackBackend", Category.PACKED_WEIGHTS, PhaseKind.METHOD_LOAD, "convolution2d_nhwc_f32")),
    (["", XNN_INIT, LOAD], ("delegate:XnnpackBackend", Category.METADATA, PhaseKind.METHOD_LOAD, None)),
    # An allocator of ExecuTorch's is ExecuTorch's, whoever asks it.
    ([MALLOC, XNN_INIT, LOAD], ("executorch", Category.METHOD_ALLOCATOR, PhaseKind.METHOD_LOAD, None)),
    ([MALLOC, QNN, EXECUTE], ("executorch", Category.TEMP_ALLOCATOR, PhaseKind.INFERENCE, None)),
    # A class that is not called as its backend is; a function of its description.
    (["_ZN10executorch8backends3qnn13TensorWrapper18AllocateDataBufferEv", QNN, EXECUTE],
     ("delegate:QnnBackend", Category.OPERATOR_BUFFERS, PhaseKind.INFERENCE, None)),
    ([FILE, GET, XNN_INIT, LOAD], ("delegate:XnnpackBackend", Category.ORIGINAL_WEIGHTS, PhaseKind.METHOD_LOAD, None)),
    ([FILE, LOAD], ("executorch", Category.PROGRAM, PhaseKind.METHOD_LOAD, None)),
    (["torch::executor::native::add_out", EXECUTE], ("executorch", Category.KERNEL_SCRATCH, PhaseKind.INFERENCE, None)),
    ([EXECUTE], ("executorch", Category.METADATA, PhaseKind.INFERENCE, None)),
    ([MODULE, "main"], ("executorch", Category.PLANNED_MEMORY, None, None)),
    ([LOAD, MODULE, "main"], ("executorch", Category.METADATA, PhaseKind.METHOD_LOAD, None)),
    # The application's own use of XNNPACK is the application's.
    (["xnn_create_convolution2d_nhwc_f32", "tflite::Prepare"], ("host", Category.OTHER, None, None)),
    (["", ""], ("unknown", Category.OTHER, None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("symbols", "expected"), STACKS)
def test_whose_a_call_stack_is(symbols, expected):
    found = place(symbols, descriptions())
    assert (found.owner, found.category, found.phase, found.operator) == expected


def test_mangled_and_demangled_names_are_the_same():
    demangled = "executorch::backends::XnnpackBackend::init(executorch::runtime::BackendInitContext&, int) const"
    assert backend_of([demangled], descriptions()) == backend_of([XNN_INIT], descriptions()) == "XnnpackBackend"
    assert qualified(demangled) == qualified(XNN_INIT) == "executorch::backends::XnnpackBackend::init"
    assert qualified("_ZN12_GLOBAL__N_14Mine4initEv") == "(anonymous)::Mine::init"
    assert qualified("_ZN4math") == "math"
    assert qualified("xnn_create_runtime") == "xnn_create_runtime"
    assert backend_of(["_ZN10executorch7runtime6Method4initEPNS_1AE"], descriptions()) is None
    assert qualified("(anonymous namespace)::Mine::init(int)") == "(anonymous)::Mine::init"
    for hostile in ("_ZN", "_ZN99999999999999a", "_ZN3", "", "(", "init", "::init BackendInitContext", "<>"):
        qualified(hostile)
        place([hostile], descriptions())


def pprof_file(path: Path, *, kinds=("inuse_space",), build_id="", module="/data/libmine.so", name="") -> Path:
    """One sample of 4096 bytes at the address 0x1010 of a module that begins at 0x1000."""
    strings = ["", *kinds, "bytes", module, build_id, name]
    at = {value: strings.index(value) for value in strings}
    types = b"".join(block(1, number(1, at[kind]) + number(2, at["bytes"])) for kind in kinds)
    sample = block(2, packed(1, [1]) + packed(2, [4096] * len(kinds)))
    mapping = number(1, 1) + number(2, 0x1000) + number(3, 0x9000) + number(5, at[module]) + number(6, at[build_id])
    line = block(4, number(1, 1)) if name else b""
    location = block(4, number(1, 1) + number(2, 1) + number(3, 0x1010) + line)
    function = block(5, number(1, 1) + number(2, at[name])) if name else b""
    table = b"".join(block(6, value.encode()) for value in strings)
    path.write_bytes(gzip.compress(types + sample + block(3, mapping) + location + function + table))
    return path


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Two builds of one library, and a stripped one."""
    folder = tmp_path_factory.mktemp("libraries")
    source = folder / "mine.c"
    source.write_text("int first(void) { return 1; }\nint second(void) { return first() + 1; }\n")
    made = {
        "a": ("-Wl,--build-id=0x11",), "b": ("-Wl,--build-id=0x22",), "none": ("-Wl,--build-id=none",),
        "stripped": ("-s", "-fvisibility=hidden", "-nostdlib"),
    }  # fmt: skip
    for name, options in made.items():
        (folder / name).mkdir()
        subprocess.run(["gcc", "-shared", "-fPIC", *options, source, "-o", folder / name / "libmine.so"], check=True)
    return folder


def test_the_build_id_decides(tmp_path, library):
    """GIVEN a build id on both sides THEN it has to be the same, whatever the module is called."""
    profile = pprof_file(tmp_path / "p", build_id="11", module="/data/app/base.apk")
    assert import_profile(profile, symbols=[library / "a/libmine.so"]).modules[0].symbols.endswith("a/libmine.so")
    profile = pprof_file(tmp_path / "p", build_id="11")
    with pytest.raises(UsageError, match="is another build: 22, the profile's is 11"):
        import_profile(profile, symbols=[library / "b/libmine.so"])
    # Where one side has none, the name has to do.
    assert import_profile(profile, symbols=[library / "none/libmine.so"]).modules[0].symbols
    inside = pprof_file(tmp_path / "q", module="/data/app/base.apk!libmine.so")
    assert import_profile(inside, symbols=[library / "b/libmine.so"]).modules[0].symbols


def test_libraries_that_do_not_help(tmp_path, library):
    profile = pprof_file(tmp_path / "p", module="/data/libother.so")
    with pytest.raises(UsageError, match=r"libmine.so is none of the profile's modules") as caught:
        import_profile(profile, symbols=[library / "a/libmine.so"])
    assert "libother.so" in caught.value.hint
    profile = pprof_file(tmp_path / "p")
    for path, words in (
        (library / "absent.so", "is not there"), (library / "mine.c", "has no symbols"),
        (library / "stripped/libmine.so", "has no symbols"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            import_profile(profile, symbols=[path])


def test_what_is_no_heap_profile(tmp_path):
    cpu = pprof_file(tmp_path / "cpu", kinds=("samples", "cpu"))
    with pytest.raises(InputError, match="its samples are samples, cpu: none is live bytes"):
        import_profile(cpu)
    wrong = {
        "text": b"heap profile: 1: 2 [3: 4]",
        "empty": b"",
        "cut": cpu.read_bytes()[:20],
        "zip": b"\x1f\x8bgarbage",
    }
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as caught:
            import_profile(tmp_path / name)
        assert caught.value.hint
    with pytest.raises(InputError, match="cannot be read"):
        import_profile(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read"):
        import_profile(tmp_path)


def heapprofd_trace(*dumps: bytes) -> bytes:
    """A Perfetto trace of one packet for each dump."""
    return b"".join(block(1, number(10, 1) + block(37, dump)) for dump in dumps)


def dump(process: int, allocated: int, *, freed: int = 0, peak: int = 0, flaw: int = 0) -> bytes:
    """A ProfilePacket with its own tables, as older versions write them."""
    strings = block(1, number(1, 1) + text(2, "xnn_plan_memory")) + block(1, number(1, 2) + text(2, XNN_INIT))
    frames = block(2, number(1, 1) + number(2, 1)) + block(2, number(1, 2) + number(2, 2))
    stack = block(3, number(1, 1) + packed(2, [2, 1]))
    sample = number(1, 1) + number(2, allocated) + number(3, freed) + number(5, 3) + number(6, 1) + number(8, peak)
    heap = number(1, process) + block(2, sample) + text(11, "libc.malloc") + number(12, 4096)
    return strings + frames + stack + block(5, heap + (number(flaw, 1) if flaw else b""))


def test_heapprofd_s_dumps(tmp_path):
    """The last dump holds; at the peak only the peak is told; flaws are issues; one of several processes is chosen."""
    path = tmp_path / "trace"
    path.write_bytes(heapprofd_trace(dump(7, 5000, freed=1000), dump(7, 9000, freed=2000)))
    found = import_profile(path)
    (owner,) = found.owners
    assert (owner.owner, owner.categories[0].category) == ("delegate:XnnpackBackend", Category.WORKSPACE)
    assert (owner.figures.live_bytes, owner.figures.allocated_bytes, owner.figures.live_blocks) == (7000, 9000, 2)
    path.write_bytes(heapprofd_trace(dump(7, 9000, freed=9000, peak=8000, flaw=7)))
    found = import_profile(path)
    assert (found.total.live_bytes, found.moment) == (8000, "at its own peak")
    assert "samples were lost: heapprofd's buffer overran" in found.issues[0].message
    path.write_bytes(heapprofd_trace(dump(7, 5000), dump(8, 600)))
    with pytest.raises(UsageError, match="it has several processes: 7, 8"):
        import_profile(path)
    assert import_profile(path, process=8).total.live_bytes == 600
    with pytest.raises(UsageError, match="process 9 is not in it"):
        import_profile(path, process=9)


@pytest.mark.parametrize("data", [b"\x08", b"\x0a\x05a", b"\x0b", b"\x00\x00", b"\x08" + b"\xff" * 11, varint(1 << 40)])
def test_messages_that_are_none(data):
    with pytest.raises(MalformedError):
        Message(memoryview(data))


def test_the_schema_is_that_of_the_dataclasses():
    assert PATH.read_text() == schema_text()
