/* etmem-runner PLAN [PROGRESS_DESCRIPTOR]: runs a program in a process that holds nothing else.
 *
 * It is an ordinary application of extension/module/module.h. The profiler finds out by itself what it
 * does (native/executorch); all that this program says is how many inferences will come and which memory
 * is its own.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/backend/interface.h>

#include "etdump.h"
#include "etmem/etmem.h"
#include "outputs.h"
#include "plan.h"
#include "progress.h"
#include "tensors.h"

/* The wheel's library has these; its headers do not. */
namespace executorch::extension::threadpool {
class ThreadPool {
 public:
  bool _unsafe_reset_threadpool(uint32_t threads);
};
__attribute__((weak)) ThreadPool* get_threadpool();
}  // namespace executorch::extension::threadpool

namespace etmem::runner {
namespace {

using executorch::extension::BufferDataLoader;
using executorch::extension::Module;
using executorch::runtime::BackendOption;
using executorch::runtime::DataLoader;
using executorch::runtime::Error;
using executorch::runtime::EventTracer;
using executorch::runtime::LoadBackendOptionsMap;
using executorch::runtime::Span;

/* Exit codes; src/etmem/capture/runner_errors.py knows them. */
enum Exit {
  kOk = 0,
  kBadPlan = 64,
  kLibraryFailed = 65,
  kOptionRefused = 66,
  kProgramFailed = 67,
  kMethodFailed = 68,
  kInputFailed = 69,
  kExecutionFailed = 70,
  kOutputFailed = 71,
  kDryStopped = 72,
};

const char* name_of(Error error) {
  const char* text = executorch::runtime::to_string(error);
  const char* colon = strrchr(text, ':');
  return colon != nullptr ? colon + 1 : text;
}

/* The memory that is allocated while one lives is the runner's own. */
class OwnMemory {
 public:
  explicit OwnMemory(const etmem_api* api) : api_(api) {
    if (api_ != nullptr) scope_ = api_->scope_begin(ETMEM_TAG, api_->string("etmem-runner", 12), 0, 0, 0);
  }
  OwnMemory(const OwnMemory&) = delete;
  ~OwnMemory() {
    if (api_ != nullptr) api_->scope_end(scope_, 0);
  }

 private:
  const etmem_api* api_;
  etmem_id scope_ = 0;
};

/* A file in a malloc block that lives as long as the process, as an embedded model or a Java byte array
 * does: BufferDataLoader never gives back what it hands out. */
std::unique_ptr<DataLoader> buffer_loader(const std::string& path, std::string* error) {
  FILE* file = fopen(path.c_str(), "rb");
  long bytes = -1;
  if (file != nullptr && fseek(file, 0, SEEK_END) == 0) bytes = ftell(file);
  void* data = bytes >= 0 ? malloc(static_cast<size_t>(bytes) + 1) : nullptr;
  if (data != nullptr) {
    setvbuf(file, nullptr, _IONBF, 0);
    rewind(file);
    if (fread(data, 1, static_cast<size_t>(bytes), file) != static_cast<size_t>(bytes)) bytes = -1;
  }
  if (bytes < 0 || data == nullptr) *error = "cannot read " + path + ": " + strerror(errno);
  if (file != nullptr) fclose(file);
  if (!error->empty()) return nullptr;
  return std::make_unique<BufferDataLoader>(data, static_cast<size_t>(bytes));
}

class Runner {
 public:
  Runner(const Plan& plan, const etmem_api* api, Progress progress) : plan_(plan), api_(api), progress_(progress) {}

  int run() {
    int status = open_libraries();
    if (status == kOk) status = set_threads();
    for (uint64_t cycle = 0; status == kOk && cycle < plan_.cycles; ++cycle) {
      status = run_once();
      if (plan_.cycles > 1) end_cycle(cycle);
    }
    return status;
  }

 private:
  int run_once() {
    int status = load_program();
    if (status == kOk) status = load_methods();
    if (status == kOk) status = execute_runs();
    if (status == kOk || status == kDryStopped) {
      const int written = finish_etdump();
      if (written != kOk) status = written;
    }
    // A method that is gone is a phase of its own, and no plan should end with methods that die at exit.
    for (const std::string& method : plan_.methods) {
      if (module_ == nullptr || !module_->is_method_loaded(method)) continue;
      progress_("unload\t%s", method.c_str());
      module_->unload_method(method);
    }
    module_.reset();
    etdump_ = nullptr;
    options_.clear();
    return status;
  }

  /* What is live now stays; what is resident and goes with the trim, malloc had kept. */
  void end_cycle(uint64_t cycle) {
    progress_("cycle\t%llu", static_cast<unsigned long long>(cycle));
    if (api_ != nullptr) api_->snapshot(api_->string("cycle", 5), 0);
    malloc_trim(0);
    if (api_ != nullptr) api_->snapshot(api_->string("cycle_trimmed", 13), 0);
  }

  int fail(Exit status, const char* phase, const char* error, const std::string& message) {
    progress_("error\t%s\t%s\t%s", phase, error, message.c_str());
    fprintf(stderr, "etmem-runner: %s: %s: %s\n", phase, error, message.c_str());
    return status;
  }

  int open_libraries() {
    for (const std::string& library : plan_.libraries) {
      progress_("library\t%s", library.c_str());
      if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
        return fail(kLibraryFailed, "library", "NotFound", dlerror());
      }
    }
    return kOk;
  }

  int set_threads() {
    if (plan_.threads == 0) return kOk;
    using executorch::extension::threadpool::get_threadpool;
    auto* pool = get_threadpool != nullptr ? get_threadpool() : nullptr;
    if (pool == nullptr) return fail(kOptionRefused, "threads", "NotSupported", "this ExecuTorch has no thread pool");
    pool->_unsafe_reset_threadpool(plan_.threads);
    return kOk;
  }

  int load_program() {
    progress_("program_load\t%s", plan_.program.c_str());
    const int status = make_module();
    if (status != kOk) return status;
    const int refused = set_options(false);
    if (refused != kOk) return refused;
    LoadBackendOptionsMap map;
    for (auto& [backend, options] : options_) {
      if (map.set_options(backend.c_str(), Span<BackendOption>(options.data(), options.size())) != Error::Ok) {
        return fail(kOptionRefused, "option", "InvalidArgument", backend + ": too many backends or too long a name");
      }
    }
    const Error error = options_.empty() ? module_->load() : module_->load(map);
    if (error != Error::Ok) return fail(kProgramFailed, "program_load", name_of(error), plan_.program);
    return kOk;
  }

  int make_module() {
    std::unique_ptr<EventTracer> etdump;
    if (!plan_.etdump.empty()) {
      OwnMemory own(api_);
      debug_.resize(plan_.debug_bytes);
      etdump = make_etdump(debug_);
      if (etdump == nullptr) return fail(kOutputFailed, "etdump", "NotSupported", "this ExecuTorch has no ETDump");
    }
    etdump_ = etdump.get();
    if (plan_.loader != Plan::Loader::kBuffer) {
      auto mode = Module::LoadMode::Mmap;
      if (plan_.loader == Plan::Loader::kMlock) mode = Module::LoadMode::MmapUseMlockIgnoreErrors;
      if (plan_.loader == Plan::Loader::kFile) mode = Module::LoadMode::File;
      module_ = std::make_unique<Module>(plan_.program, plan_.data, mode, std::move(etdump), nullptr, nullptr,
                                         plan_.share_arenas);
      return kOk;
    }
    if (plan_.data.size() > 1) {
      return fail(kBadPlan, "plan", "NotSupported", "the buffer loader takes one .ptd file");
    }
    std::string error;
    auto program = buffer_loader(plan_.program, &error);
    auto data = error.empty() && !plan_.data.empty() ? buffer_loader(plan_.data[0], &error) : nullptr;
    if (!error.empty()) return fail(kProgramFailed, "program_load", "AccessFailed", error);
    module_ = std::make_unique<Module>(std::move(program), nullptr, nullptr, std::move(etdump), std::move(data),
                                       plan_.share_arenas);
    return kOk;
  }

  /* Backends read an option in one of two ways: those of a load (BackendInitContext::get_runtime_spec),
   * or a global one (set_option). XNNPACK takes its sharing mode both ways, its packed cache's path only
   * by load, and saves its cache only by set_option; so what can be given both ways is. */
  int set_options(bool after_load) {
    OwnMemory own(api_);
    for (const Option& option : plan_.options) {
      if (option.after_load != after_load) continue;
      BackendOption value{};
      if (option.key.size() >= sizeof(value.key) || option.text.size() >= executorch::runtime::kMaxOptionValueLength) {
        return fail(kOptionRefused, "option", "InvalidArgument", option.key + " is too long");
      }
      memcpy(value.key, option.key.c_str(), option.key.size() + 1);
      if (option.type == Option::Type::kBool) {
        value.value = option.integer != 0;
      } else if (option.type == Option::Type::kInt) {
        value.value = option.integer;
      } else {
        std::array<char, executorch::runtime::kMaxOptionValueLength> text{};
        memcpy(text.data(), option.text.c_str(), option.text.size());
        value.value = text;
      }
      const Error error = executorch::runtime::set_option(option.backend.c_str(), Span<BackendOption>(&value, 1));
      if (error != Error::Ok) {
        return fail(kOptionRefused, "option", name_of(error), option.backend + ":" + option.key + "=" + option.text);
      }
      if (!after_load) options_[option.backend].push_back(value);
    }
    return kOk;
  }

  int load_methods() {
    for (const std::string& method : plan_.methods) {
      progress_("method_load\t%s", method.c_str());
      const Error error = module_->load_method(method);
      if (error != Error::Ok) return fail(kMethodFailed, "method_load", name_of(error), method);
    }
    return set_options(true);
  }

  int execute_runs() {
    if (api_ != nullptr) api_->expect_inferences(plan_.inferences());
    OutputFile outputs(plan_.outputs);
    int status = kOk;
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      const int result = execute_run(plan_.runs[i], i, &outputs);
      if (result != kOk && result != kDryStopped) return result;
      if (result != kOk) status = result;
    }
    if (!outputs.close()) return fail(kOutputFailed, "outputs", "AccessFailed", plan_.outputs);
    return status;
  }

  int execute_run(const Run& run, size_t number, OutputFile* outputs) {
    Tensors inputs;
    Tensors buffers;
    std::string message = prepare(run, &inputs, &buffers);
    if (!message.empty()) return fail(kInputFailed, "inputs", "InvalidArgument", run.method + ": " + message);
    int status = kOk;
    for (uint64_t i = 0; i < run.iterations; ++i) {
      progress_("inference\t%s\t%zu\t%llu", run.method.c_str(), number, static_cast<unsigned long long>(i));
      const auto result = module_->execute(run.method, inputs.values());
      if (result.ok()) {
        if (i + 1 == run.iterations) outputs->add(run.method, *result);
        continue;
      }
      // set_input refuses what does not fit before anything runs; a dry run cannot make it fit either.
      status = fail(plan_.dry ? kDryStopped : kExecutionFailed, "inference", name_of(result.error()), run.method);
      if (!plan_.dry) return status;
    }
    return status;
  }

  std::string prepare(const Run& run, Tensors* inputs, Tensors* buffers) {
    const auto meta = module_->method_meta(run.method);
    if (!meta.ok()) return "no such method";
    {
      OwnMemory own(api_);
      std::string error = inputs->make_inputs(run, *meta, !plan_.dry);
      if (error.empty()) error = buffers->make_outputs(*meta, !plan_.dry);
      if (!error.empty()) return error;
    }
    for (size_t i = 0; i < inputs->values().size(); ++i) {
      const Error error = module_->set_input(run.method, inputs->values()[i], i);
      if (error != Error::Ok) return std::string("input ") + std::to_string(i) + " is refused: " + name_of(error);
    }
    for (size_t i = 0; i < buffers->values().size(); ++i) {
      const Error error = module_->set_output(run.method, buffers->values()[i], buffers->indices()[i]);
      if (error != Error::Ok) return std::string("output ") + std::to_string(i) + " is refused: " + name_of(error);
    }
    return "";
  }

  int finish_etdump() {
    if (etdump_ == nullptr) return kOk;
    bool written = write_etdump(etdump_, plan_.etdump);
    if (!debug_.empty()) written = write_file(plan_.etdump + ".debug", debug_.data(), debug_.size()) && written;
    if (!written) return fail(kOutputFailed, "etdump", "AccessFailed", plan_.etdump);
    return kOk;
  }

  const Plan& plan_;
  const etmem_api* api_;
  Progress progress_;
  std::map<std::string, std::vector<BackendOption>> options_;
  std::vector<uint8_t> debug_;
  std::unique_ptr<Module> module_;
  EventTracer* etdump_ = nullptr;  // module_ owns it
};

int run_plan(const char* path, int descriptor) {
  const auto* api = static_cast<const etmem_api*>(dlsym(RTLD_DEFAULT, "etmem_api_v1"));
  const Progress progress(descriptor);
  Plan plan;
  {
    OwnMemory own(api);
    const std::string error = read_plan(path, &plan);
    if (!error.empty()) {
      progress("error\tplan\tInvalidArgument\t%s", error.c_str());
      fprintf(stderr, "etmem-runner: %s\n", error.c_str());
      return kBadPlan;
    }
  }
  const int status = Runner(plan, api, progress).run();
  progress("done\t%d", status);
  return status;
}

}  // namespace
}  // namespace etmem::runner

int main(int argc, char** argv) {
  if (argc < 2) {
    fputs("usage: etmem-runner PLAN [PROGRESS_DESCRIPTOR]\n", stderr);
    return etmem::runner::kBadPlan;
  }
  return etmem::runner::run_plan(argv[1], argc > 2 ? atoi(argv[2]) : -1);
}
