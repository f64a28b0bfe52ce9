// A program as an application would write it: MODEL SHARING_MODE INFERENCES [OUTPUT [ETDUMP DEBUG]].
// Prints "first N steady N workspaces N" (allocations of the first and of all later inferences); writes the last
// output, and an ETDump with every intermediate output in a debug buffer.
#include <dlfcn.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using executorch::extension::Module;

static long ask(const char* name) {
  auto* count = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, name));
  return count ? count() : 0;
}

static void write_file(const char* path, const void* data, size_t bytes) {
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file)) abort();
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  executorch::runtime::BackendOptions<1> options;
  options.set_option("workspace_sharing_mode", atoi(argv[2]));
  if (executorch::runtime::set_option("XnnpackBackend", options.view()) != executorch::runtime::Error::Ok) return 3;

  std::unique_ptr<executorch::etdump::ETDumpGen> dump;
  std::vector<uint8_t> debug(argc > 6 ? 256 << 20 : 0);
  if (argc > 6) {
    dump = std::make_unique<executorch::etdump::ETDumpGen>();
    dump->set_debug_buffer({debug.data(), debug.size()});
    dump->set_event_tracer_debug_level(executorch::runtime::EventTracerDebugLogLevel::kIntermediateOutputs);
  }
  auto* etdump = dump.get();
  Module module(argv[1], Module::LoadMode::Mmap, std::move(dump));
  std::vector<float> image(3 * 256 * 256);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 255) / 255;
  auto input = executorch::extension::make_tensor_ptr({1, 3, 256, 256}, std::move(image));

  const int inferences = atoi(argv[3]);
  if (module.load_forward() != executorch::runtime::Error::Ok) return 4;
  long start = ask("counted"), first = 0;
  std::vector<float> last;
  for (int i = 0; i < inferences; ++i) {
    auto result = module.forward(input);
    if (!result.ok()) return 5;
    if (i == 0) first = ask("counted") - start;
    if (i == inferences - 1) {
      auto tensor = (*result)[0].toTensor();
      last.assign(tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel());
    }
  }
  const long total = ask("counted") - start;
  if (argc > 4) write_file(argv[4], last.data(), last.size() * sizeof(float));
  if (etdump) {
    auto result = etdump->get_etdump_data();
    write_file(argv[5], result.buf, result.size);
    write_file(argv[6], debug.data(), debug.size());
  }
  printf("first %ld steady %ld workspaces %ld\n", first, total - first, ask("counted_workspaces"));
}
