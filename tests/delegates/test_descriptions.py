"""The descriptions that come with etmem: on call stacks as recorded, and against the libraries in the wheel."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from etmem.delegates import Evidence, descriptions, parse, stack_backends
from etmem.delegates.description import FUNCTION_GROUPS
from etmem.delegates.indirection import Indirection, indirection
from etmem.model.errors import InputError
from etmem.model.words import Category

CACHE = "_ZN10executorch8backends7xnnpack8delegate15XNNWeightsCache"
INIT = ["xnn_create_runtime_v4", "_ZN10executorch8backends7xnnpack8delegate11XNNCompiler12compileModelEPKvm"]
EXECUTE = ["xnn_reshape_runtime", "_ZN10executorch8backends7xnnpack8delegate11XNNExecutor12prepare_argsE"]
FORM = """
backend = "B"
record_stacks = true
threads = "own"
[[rules]]
symbol = 'f'
category = "workspace"
[dry]
reason = "no"
[tested]
by = "run"
what = "this test"
"""

STACKS = [
    (["", "", "create_convolution2d_nhwc_helper", "xnn_create_convolution2d_nhwc_f32", *INIT], "posix_memalign",
     Category.PACKED_WEIGHTS, "convolution2d_nhwc_f32", None),
    (["", "xnn_create_fully_connected_nc_f32", *INIT], "memalign",
     Category.PACKED_WEIGHTS, "fully_connected_nc_f32", None),
    (["", "xnn_create_fully_connected_nc_f32", *INIT], "malloc", Category.METADATA, None, None),
    (["", "xnn_fingerprint_convolution2d_nhwc", "xnn_create_convolution2d_nhwc_f32", *INIT], "posix_memalign",
     Category.METADATA, None, None),
    (["", *INIT], "posix_memalign", Category.METADATA, None, None),
    (["xnn_create_workspace"], "posix_memalign", Category.METADATA, None, None),
    (["xnn_create_weights_cache_with_size"], "posix_memalign", Category.METADATA, None, None),
    (["", "xnn_reshape_convolution2d_nhwc_f32", *EXECUTE], "realloc",
     Category.OPERATOR_BUFFERS, "convolution2d_nhwc_f32", None),
    (["", *EXECUTE], "realloc", Category.METADATA, None, None),
    (["xnn_plan_memory", *EXECUTE], "posix_memalign", Category.WORKSPACE, None, "workspace"),
    (["xnn_plan_memory", *EXECUTE], "malloc", Category.METADATA, None, None),
    (["_Znwm", f"{CACHE}18reserve_space_heapEm", f"{CACHE}13reserve_spaceEPS3_m", "xnn_create_fully_connected_nc_f32"],
     "malloc", Category.PACKED_WEIGHTS, None, "weight_cache"),
    ([f"{CACHE}13reserve_spaceEPS3_m", "xnn_create_fully_connected_nc_f32"], "mmap",
     Category.PACKED_WEIGHTS, None, "weight_cache"),
    (["_Znwm", f"{CACHE}17look_up_or_insertEPS3_", "xnn_create_fully_connected_nc_f32"], "malloc",
     Category.METADATA, None, None),
    (["_Znwm", "_ZN10executorch8backends7xnnpack8delegate12defineTensorE"], "malloc", Category.METADATA, None, None),
    ([], "posix_memalign", Category.METADATA, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("symbols", "function", "category", "operator", "shared"), STACKS)
def test_xnnpack_stacks(symbols, function, category, operator, shared):
    xnnpack = descriptions()["XnnpackBackend"]
    assert xnnpack.categorize(symbols, function) == (category, operator)
    assert xnnpack.category(symbols, function) is category
    assert xnnpack.operator(symbols, function) == operator
    assert xnnpack.shared(symbols, function) == shared


def exported(backend: str) -> set[str]:
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]) / "lib" / f"libexecutorch_backend_{backend}.so"
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".dynsym")
        return {symbol.name for symbol in section.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}


def test_every_rule_of_xnnpack_names_a_function_of_the_wheel():
    names = exported("xnnpack")
    for rule in descriptions()["XnnpackBackend"].rules:
        assert any(rule.symbol.fullmatch(name) for name in names), rule.symbol.pattern


def test_every_constructor_and_reshape_of_the_wheel_is_listed():
    xnnpack = descriptions()["XnnpackBackend"]
    names = [name for name in exported("xnnpack") if name.startswith(("xnn_create_", "xnn_reshape_"))]
    assert len(names) > 200
    categories = {name: xnnpack.category([name], "posix_memalign") for name in names}
    assert {name for name in names if categories[name] is Category.METADATA} == {
        "xnn_create_runtime", "xnn_create_runtime_v2", "xnn_create_runtime_v3", "xnn_create_runtime_v4",
        "xnn_create_runtime_with_threadpool", "xnn_create_subgraph", "xnn_create_threadpool_v2",
        "xnn_create_weights_cache", "xnn_create_weights_cache_with_size", "xnn_create_workspace",
        "xnn_reshape_runtime", "xnn_reshape_external_value",
    }  # fmt: skip
    assert xnnpack.operator(["xnn_create_resize_bilinear2d_nhwc"], "posix_memalign") == "resize_bilinear2d_nhwc"


def test_the_dry_symbol_is_one_that_the_wheel_exports():
    assert descriptions()["XnnpackBackend"].dry.symbol in exported("xnnpack")
    openvino = descriptions()["OpenvinoBackend"].dry
    assert openvino.symbol is None
    assert openvino.reason


def test_which_backends_record_stacks():
    assert set(descriptions()) - set(stack_backends()) == {"OpenvinoBackend", "EthosUBackend"}
    assert descriptions()["OpenvinoBackend"].category(["anything"], "malloc") is Category.METADATA


def test_libraries_by_file_name():
    openvino = descriptions()["OpenvinoBackend"]
    assert openvino.owns_library("/site-packages/openvino/libs/libopenvino_intel_cpu_plugin.so")
    assert openvino.owns_library("/site-packages/openvino/libs/libtbb.so.12")
    assert not openvino.owns_library("/usr/lib/libc.so.6")
    assert not descriptions()["XnnpackBackend"].owns_library("/usr/lib/libc.so.6")


@pytest.mark.parametrize(("isa", "size"), [("avx512", 4_718_952), ("avx2", 4_718_880), ("neon", 4_718_736)])
def test_tables_of_pointers(isa, size):
    """3x3 convolutions of 256x256, measured on each instruction set."""
    tile = descriptions()["XnnpackBackend"].tiles[isa]
    found = Indirection(256, 256, 9)
    assert found.pointers(tile) * 8 == size
    assert indirection(size // 8, tile, [(256, 256), (1, 32)]) == found
    assert indirection(size // 8, tile, [(512, 512)]) == found
    assert indirection(size // 8 + 1, tile, [(256, 256)]) is None
    assert indirection(size // 8, tile, []) is None


def test_a_size_that_two_convolutions_have_is_not_explained():
    """36 taps' worth: a 2x2 window on 3x3 outputs, and a 3x3 window on 2x2 outputs."""
    assert indirection(36, 1, [(3, 3), (2, 2)]) is None


def test_function_groups_do_not_overlap():
    names = [name for group in FUNCTION_GROUPS.values() for name in group]
    assert len(names) == len(set(names))


def test_the_form_of_a_description():
    made = parse(FORM, "b.toml")
    assert made.backend == "B"
    assert made.category(["g", "f"], "mmap") is Category.WORKSPACE


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('backend = "B"', "backend = ", "b.toml is not TOML"),
        ('backend = "B"', "", "b.toml: backend is missing"),
        ('backend = "B"', "backend = 3", "b.toml: backend has to be a string"),
        ("record_stacks = true", "record_stacks = false", "rules need record_stacks"),
        ('threads = "own"', 'threads = "other"', "threads has to be one of pool, own"),
        ("'f'", "'(f'", "b.toml: rules[0]: '(f' is not a regular expression"),
        ('"workspace"', '"workspaces"', "b.toml: rules[0]: category has to be one of"),
        ("symbol = 'f'", "symbol = 'f'\nfunctions = ['sbrk']", "rules[0]: functions has to be one of"),
        ("symbol = 'f'", "symbol = 'f'\nsymbols = 'g'", "b.toml: rules[0]: unknown key 'symbols'"),
        ("symbol = 'f'", "symbol = 'f'\nobject = 3", "rules[0]: object has to be a string"),
        ('reason = "no"', "", "b.toml: dry: reason is missing"),
        ('"workspace"', '"planned_memory"', "b.toml: rules[0]: category has to be one of original_weights"),
        ("symbol = 'f'", "symbol = 'f'\nobject = 'cache'", "b.toml: rules[0]: no [[shares]] has the object 'cache'"),
        ('reason = "no"', 'reason = "no"\nsymbol = "f(int)"', "b.toml: dry: symbol has to be the name of a function"),
        ('threads = "own"', 'threads = "own"\nestimate = "a.b"', "b.toml: estimate has to be package.module:function"),
        ('threads = "own"', 'threads = "own"\nlibraries = ["*.so"]', "b.toml: '*.so' is not a regular expression"),
        ('threads = "own"', 'threads = "own"\nlibraries = "a.so"', "b.toml: libraries has to be a list of strings"),
        ('by = "run"', 'by = "hearsay"', "b.toml: tested: by has to be one of run, reading"),
        ('by = "run"', 'by = "reading"', "b.toml: tested: sources has to be the files and functions that were read"),
        ("[dry]", "[tiles]\navx2 = 0\n[dry]", "b.toml: tiles has to be a table of positive numbers"),
    ],
)
def test_errors_name_the_file_and_the_field(old, new, words):
    assert old in FORM
    with pytest.raises(InputError) as caught:
        parse(FORM.replace(old, new, 1), "b.toml")
    assert words in caught.value.message
    assert caught.value.hint


DECLARED = """
#include <cstddef>
#include <memory>
#include <string>
#include <vector>
#define HERE __attribute__((noinline, used))
namespace executorch::backends::qnn {
struct TensorWrapper { int AllocateDataBuffer(); };
HERE int TensorWrapper::AllocateDataBuffer() { return 0; }
struct SharedBuffer { void* AllocMem(size_t, size_t); };
HERE void* SharedBuffer::AllocMem(size_t, size_t) { return nullptr; }
struct QnnContext { int Configure(); };
HERE int QnnContext::Configure() { return 0; }
}
namespace vkcompute {
namespace vkapi { enum class ScalarType : signed char {}; enum class CopyDirection : unsigned char {}; }
using ValueRef = int;
struct ComputeGraph {
  ValueRef add_staging(vkapi::ScalarType, size_t, vkapi::CopyDirection);
  void prepack();
};
HERE ValueRef ComputeGraph::add_staging(vkapi::ScalarType, size_t, vkapi::CopyDirection) { return 0; }
HERE void ComputeGraph::prepack() {}
struct PrepackNode { int create_staging_buffer(ComputeGraph*); void encode(ComputeGraph*); };
HERE int PrepackNode::create_staging_buffer(ComputeGraph*) { return 0; }
HERE void PrepackNode::encode(ComputeGraph*) {}
struct SharedObject { void allocate(ComputeGraph*); };
HERE void SharedObject::allocate(ComputeGraph*) {}
}
namespace executorch::backends::neuron {
struct BufferAllocator { void* Allocate(size_t); };
HERE void* BufferAllocator::Allocate(size_t) { return nullptr; }
struct NeuronExecutor { int LoadFromCompiledNetwork(const void*, size_t, int, int, std::string&); };
HERE int NeuronExecutor::LoadFromCompiledNetwork(const void*, size_t, int, int, std::string&) { return 0; }
}
namespace executorch::backends::mps::delegate {
struct Tensor;
struct MPSExecutor {
  int initDataBuffers();
  int updateDataBuffers(std::vector<const Tensor*>&, std::vector<const Tensor*>&);
};
HERE int MPSExecutor::initDataBuffers() { return 0; }
HERE int MPSExecutor::updateDataBuffers(std::vector<const Tensor*>&, std::vector<const Tensor*>&) { return 0; }
struct MPSGraphBuilder { int compileModel(); };
HERE int MPSGraphBuilder::compileModel() { return 0; }
}
namespace inmemoryfs {
struct MemoryBuffer;
struct InMemoryFileSystem { static void make_from_buffer(const std::shared_ptr<MemoryBuffer>&); };
HERE void InMemoryFileSystem::make_from_buffer(const std::shared_ptr<MemoryBuffer>&) {}
}
namespace { HERE void* make_ml_multi_array(const std::vector<size_t>&) { return nullptr; } }
extern "C" HERE int AOTInductorModelContainerCreateWithDevice(void**, size_t, const char*, const char*) { return 0; }
extern "C" HERE int AOTInductorModelUpdateConstantsFromBlob(void*, const unsigned char*) { return 0; }
"""
"""The functions that the descriptions by reading name, with the namespaces and parameters of their declarations."""


def test_rules_by_reading_match_the_names_that_a_compiler_gives_their_functions(tmp_path):
    source, compiled = tmp_path / "declared.cpp", tmp_path / "declared.o"
    source.write_text(DECLARED)
    subprocess.run(["g++", "-std=c++17", "-w", "-c", source, "-o", compiled], check=True)
    with compiled.open("rb") as file:
        names = {symbol.name for symbol in ELFFile(file).get_section_by_name(".symtab").iter_symbols()}
    for backend, description in descriptions().items():
        if description.tested.by is not Evidence.READING:
            continue
        for rule in description.rules:
            if not rule.symbol.pattern.startswith("["):  # of Objective-C, whose methods' names are as they are written
                assert any(rule.symbol.fullmatch(name) for name in names), (backend, rule.symbol.pattern)


def test_the_innermost_function_of_vulkan_decides():
    """Staging buffers of weights are made in the call that packs them, in the one that goes over all of them."""
    vulkan = descriptions()["VulkanBackend"]
    prepack, encode = "_ZN9vkcompute12ComputeGraph7prepackEv", "_ZN9vkcompute11PrepackNode6encodeEPNS_12ComputeGraphE"
    staging = "_ZN9vkcompute11PrepackNode21create_staging_bufferEPNS_12ComputeGraphE"
    assert vulkan.category([staging, encode, prepack], "mmap") is Category.WORKSPACE
    assert vulkan.category([encode, prepack], "mmap") is Category.PACKED_WEIGHTS
    assert vulkan.category([prepack], "mmap") is Category.WORKSPACE
    assert vulkan.category([prepack], "malloc") is Category.METADATA


def test_every_description_says_what_it_rests_on():
    by_run = {name for name, found in descriptions().items() if found.tested.by is Evidence.RUN}
    assert by_run == {"XnnpackBackend", "OpenvinoBackend"}
    for name, found in descriptions().items():
        assert found.tested.what, name
        assert found.dry.reason, name
        sources = found.tested.sources
        assert all(source.startswith("backends/") and ": " in source for source in sources), name
