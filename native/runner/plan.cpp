#include "plan.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace etmem::runner {
namespace {

using Fields = std::vector<std::string>;

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Fields split(const std::string& line) {
  Fields fields(1);
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\t') {
      fields.emplace_back();
    } else if (line[i] == '%' && i + 2 < line.size() && hex(line[i + 1]) >= 0 && hex(line[i + 2]) >= 0) {
      fields.back() += static_cast<char>(hex(line[i + 1]) * 16 + hex(line[i + 2]));
      i += 2;
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

bool to_uint(const std::string& text, uint64_t* value) {
  char* end = nullptr;
  errno = 0;
  *value = strtoull(text.c_str(), &end, 10);
  return !text.empty() && *end == '\0' && errno == 0;
}

bool to_int(const std::string& text, int64_t* value) {
  char* end = nullptr;
  errno = 0;
  *value = strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == '\0' && errno == 0;
}

bool to_double(const std::string& text, double* value) {
  char* end = nullptr;
  *value = strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

bool to_sizes(const std::string& text, std::vector<int32_t>* sizes) {
  if (text == "-") return true;
  const char* at = text.c_str();
  while (true) {
    char* end = nullptr;
    const long value = strtol(at, &end, 10);
    if (end == at || value < 0 || value > INT32_MAX) return false;
    sizes->push_back(static_cast<int32_t>(value));
    if (*end == '\0') return true;
    if (*end != 'x') return false;
    at = end + 1;
  }
}

bool to_loader(const std::string& text, Plan::Loader* loader) {
  if (text == "mmap")
    *loader = Plan::Loader::kMmap;
  else if (text == "mlock")
    *loader = Plan::Loader::kMlock;
  else if (text == "file")
    *loader = Plan::Loader::kFile;
  else if (text == "buffer")
    *loader = Plan::Loader::kBuffer;
  else
    return false;
  return true;
}

bool read_option(const Fields& f, Plan* plan) {
  if (f.size() != 6) return false;
  Option option;
  option.backend = f[1];
  option.key = f[2];
  option.text = f[4];
  int64_t value = 0;
  if (f[3] == "string") {
    option.type = Option::Type::kString;
  } else if (f[3] == "bool" || f[3] == "int") {
    option.type = f[3] == "bool" ? Option::Type::kBool : Option::Type::kInt;
    if (!to_int(f[4], &value) || value < INT32_MIN || value > INT32_MAX) return false;
  } else {
    return false;
  }
  option.integer = static_cast<int>(value);
  option.after_load = f[5] == "after";
  plan->options.push_back(option);
  return option.after_load || f[5] == "before";
}

bool read_tensor(const Fields& f, Input* input) {
  uint64_t dtype = 0;
  if (f.size() < 4 || !to_uint(f[1], &dtype) || dtype > INT8_MAX || !to_sizes(f[2], &input->sizes)) return false;
  input->kind = Input::Kind::kTensor;
  input->dtype = static_cast<int>(dtype);
  if (f[3] == "zeros") {
    input->fill = Input::Fill::kZeros;
    return f.size() == 4;
  }
  if (f[3] == "random") {
    input->fill = Input::Fill::kRandom;
    return f.size() == 5 && to_uint(f[4], &input->seed);
  }
  if (f[3] == "file" && f.size() == 6) {
    input->fill = Input::Fill::kFile;
    input->text = f[4];
    return to_uint(f[5], &input->offset);
  }
  return false;
}

bool read_scalar(const Fields& f, Input* input) {
  if (f[0] == "none") {
    input->kind = Input::Kind::kNone;
    return f.size() == 1;
  }
  if (f.size() != 2) return false;
  if (f[0] == "string") {
    input->kind = Input::Kind::kString;
    input->text = f[1];
    return true;
  }
  if (f[0] == "double") {
    input->kind = Input::Kind::kDouble;
    return to_double(f[1], &input->real);
  }
  input->kind = f[0] == "bool" ? Input::Kind::kBool : Input::Kind::kInt;
  return to_int(f[1], &input->integer);
}

bool read_input(const Fields& f, Plan* plan) {
  if (plan->runs.empty()) return false;
  Input input;
  if (f[0] == "tensor" ? !read_tensor(f, &input) : !read_scalar(f, &input)) return false;
  plan->runs.back().inputs.push_back(std::move(input));
  return true;
}

bool read_run(const Fields& f, Plan* plan) {
  Run run;
  if (f.size() != 3 || !to_uint(f[2], &run.iterations)) return false;
  run.method = f[1];
  plan->runs.push_back(std::move(run));
  return true;
}

bool read_item(const Fields& f, Plan* plan) {
  const std::string& item = f[0];
  uint64_t number = 0;
  if (item == "tensor" || item == "int" || item == "bool" || item == "double" || item == "string" || item == "none") {
    return read_input(f, plan);
  }
  if (item == "run") return read_run(f, plan);
  if (item == "option") return read_option(f, plan);
  if (item == "etdump") {
    plan->etdump = f.size() == 3 ? f[1] : "";
    return f.size() == 3 && to_uint(f[2], &plan->debug_bytes);
  }
  if (f.size() != 2) return false;
  if (item == "program")
    plan->program = f[1];
  else if (item == "data")
    plan->data.push_back(f[1]);
  else if (item == "loader")
    return to_loader(f[1], &plan->loader);
  else if (item == "library")
    plan->libraries.push_back(f[1]);
  else if (item == "method")
    plan->methods.push_back(f[1]);
  else if (item == "outputs")
    plan->outputs = f[1];
  else if (!to_uint(f[1], &number))
    return false;
  else if (item == "etmem-plan")
    return number == 1;
  else if (item == "threads")
    plan->threads = static_cast<uint32_t>(number);
  else if (item == "share_arenas")
    plan->share_arenas = number != 0;
  else if (item == "dry")
    plan->dry = number != 0;
  else if (item == "cycles" && number > 0)
    plan->cycles = number;
  else
    return false;
  return true;
}

}  // namespace

uint64_t Plan::inferences() const {
  uint64_t total = 0;
  for (const Run& run : runs) total += run.iterations;
  return total;
}

std::string read_plan(const char* path, Plan* plan) {
  FILE* file = fopen(path, "rb");
  if (file == nullptr) return std::string("cannot open ") + path + ": " + strerror(errno);
  char* buffer = nullptr;
  size_t capacity = 0;
  size_t number = 0;
  std::string error;
  ssize_t length;
  while (error.empty() && (length = getline(&buffer, &capacity, file)) > 0) {
    ++number;
    if (buffer[length - 1] == '\n') --length;
    const Fields fields = split(std::string(buffer, static_cast<size_t>(length)));
    if ((number == 1) != (fields[0] == "etmem-plan") || !read_item(fields, plan)) {
      error = "line " + std::to_string(number) + " is not understood: " + fields[0];
    }
  }
  free(buffer);
  fclose(file);
  if (error.empty() && plan->program.empty()) error = "the plan names no program";
  return error;
}

}  // namespace etmem::runner
