# For an application's own CMake build: include(.../etmem.cmake), then link one of
#
#   etmem::headers      etmem/etmem.h and its companions, nothing else
#   etmem::wrap         and etmem's hooks in front of a static ExecuTorch; one source file includes etmem/wrap.hpp
#   etmem::wrap_malloc  and the recorder of etmem/recorder.hpp follows malloc's family
include_guard(GLOBAL)

add_library(etmem_headers INTERFACE)
target_include_directories(etmem_headers INTERFACE "${CMAKE_CURRENT_LIST_DIR}/../include")
target_compile_features(etmem_headers INTERFACE cxx_std_17)
add_library(etmem::headers ALIAS etmem_headers)

# The symbols of ETMEM_WRAPPED in etmem/wrap.hpp, which a test compares.
set(ETMEM_WRAPPED_SYMBOLS
  _ZN10executorch7runtime7Program4loadEPNS0_10DataLoaderENS1_12VerificationE
  _ZNK10executorch7runtime7Program11load_methodEPKcPNS0_13MemoryManagerEPNS0_11EventTracerEPKNS0_12NamedDataMapEPKNS0_21LoadBackendOptionsMapENS0_4SpanIKNS0_6KernelEEE
  _ZN10executorch7runtime6Method7executeEv
  _ZN10executorch7runtime6MethodD1Ev
  _ZN10executorch7runtime6Method9set_inputERKNS0_6EValueEm
  _ZN10executorch7runtime6Method19set_output_data_ptrEPvmm
  _ZN10executorch7runtime6Method16get_event_tracerEv
  _ZN10executorch7runtime17get_backend_classEPKc
  _ZN10executorch9extension17FlatTensorDataMap4loadEPNS_7runtime10DataLoaderE
  _ZN10executorch7runtime20get_device_allocatorENS0_7etensor10DeviceTypeE)

add_library(etmem_wrap INTERFACE)
target_link_libraries(etmem_wrap INTERFACE etmem_headers)
target_compile_definitions(etmem_wrap INTERFACE ETMEM_WRAP)
foreach(symbol IN LISTS ETMEM_WRAPPED_SYMBOLS)
  target_link_options(etmem_wrap INTERFACE "-Wl,--wrap=${symbol}")
endforeach()
add_library(etmem::wrap ALIAS etmem_wrap)

add_library(etmem_wrap_malloc INTERFACE)
target_sources(etmem_wrap_malloc INTERFACE "${CMAKE_CURRENT_LIST_DIR}/wrap_malloc.cpp")
target_link_libraries(etmem_wrap_malloc INTERFACE etmem_wrap)
target_compile_definitions(etmem_wrap_malloc INTERFACE ETMEM_WRAP_MALLOC)
foreach(function malloc calloc realloc free posix_memalign aligned_alloc memalign)
  target_link_options(etmem_wrap_malloc INTERFACE "-Wl,--wrap=${function}")
endforeach()
add_library(etmem::wrap_malloc ALIAS etmem_wrap_malloc)
