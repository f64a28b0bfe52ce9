/* What etmem-runner is to do, read from a plan file.
 *
 * A plan is text: one item a line, fields separated by tabs, `%09`, `%0A` and `%25` for the characters
 * that would break a line. Python writes it (src/etmem/capture/plan.py), so that every choice is made
 * there and this program needs no parser of models, shapes or JSON.
 *
 *   etmem-plan     1                                    first line
 *   program        PATH
 *   data           PATH                                 a .ptd file; repeatable
 *   loader         mmap|mlock|file|buffer
 *   library        PATH                                 opened before the program is loaded; repeatable
 *   option         BACKEND KEY bool|int|string VALUE before|after    before or after the methods are loaded
 *   threads        N
 *   share_arenas   1
 *   cycles         N                                    load, run and unload N times
 *   dry            1                                    goes on after a failed execution; inputs stay untouched
 *   etdump         PATH DEBUG_BYTES                     0: no intermediate outputs
 *   outputs        PATH
 *   method         NAME                                 loaded, in this order
 *   run            METHOD ITERATIONS                    a run; its inputs follow, in order
 *   tensor         DTYPE SIZES random SEED              DTYPE: ExecuTorch's ScalarType number;
 *   tensor         DTYPE SIZES zeros                    SIZES: 1x3x224, or - for a scalar tensor
 *   tensor         DTYPE SIZES file PATH OFFSET
 *   int|bool|double|string VALUE
 *   none
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace etmem::runner {

struct Input {
  enum class Kind { kTensor, kInt, kBool, kDouble, kString, kNone };
  enum class Fill { kRandom, kZeros, kFile };

  Kind kind = Kind::kNone;
  int dtype = 0;
  std::vector<int32_t> sizes;
  Fill fill = Fill::kZeros;
  uint64_t seed = 0;
  uint64_t offset = 0;
  std::string text;  // kString: the value; kFile: the path
  int64_t integer = 0;
  double real = 0;
};

struct Run {
  std::string method;
  uint64_t iterations = 1;
  std::vector<Input> inputs;
};

struct Option {
  enum class Type { kBool, kInt, kString };

  std::string backend;
  std::string key;
  Type type = Type::kBool;
  std::string text;
  int integer = 0;
  bool after_load = false;
};

struct Plan {
  enum class Loader { kMmap, kMlock, kFile, kBuffer };

  std::string program;
  std::vector<std::string> data;
  Loader loader = Loader::kMmap;
  std::vector<std::string> libraries;
  std::vector<Option> options;
  uint32_t threads = 0;  // 0: ExecuTorch's own choice
  bool share_arenas = false;
  bool dry = false;
  uint64_t cycles = 1;
  std::string etdump;
  uint64_t debug_bytes = 0;
  std::string outputs;
  std::vector<std::string> methods;
  std::vector<Run> runs;

  uint64_t inferences() const;
};

/* Returns an empty string, or what is wrong and in which line. */
std::string read_plan(const char* path, Plan* plan);

}  // namespace etmem::runner
