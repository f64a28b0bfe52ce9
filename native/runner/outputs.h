/* What a run returned, for those who compare it with another run: per value one line of text
 *
 *   METHOD <tab> INDEX <tab> tensor <tab> DTYPE <tab> SIZES <tab> BYTES        and the bytes
 *   METHOD <tab> INDEX <tab> int|bool|double|none|other <tab> VALUE
 */
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <executorch/runtime/core/evalue.h>

namespace etmem::runner {

class OutputFile {
 public:
  explicit OutputFile(const std::string& path) {
    if (path.empty()) return;
    file_ = fopen(path.c_str(), "wb");
    ok_ = file_ != nullptr;
  }
  OutputFile(const OutputFile&) = delete;
  ~OutputFile() { close(); }

  void add(const std::string& method, const std::vector<executorch::runtime::EValue>& values) {
    for (size_t i = 0; file_ != nullptr && i < values.size(); ++i) {
      fprintf(file_, "%s\t%zu\t", method.c_str(), i);
      if (values[i].isTensor())
        add_tensor(values[i].toTensor());
      else if (values[i].isInt())
        fprintf(file_, "int\t%lld\n", static_cast<long long>(values[i].toInt()));
      else if (values[i].isBool())
        fprintf(file_, "bool\t%d\n", values[i].toBool());
      else if (values[i].isDouble())
        fprintf(file_, "double\t%.17g\n", values[i].toDouble());
      else
        fprintf(file_, "%s\t\n", values[i].isNone() ? "none" : "other");
    }
  }

  bool close() {
    if (file_ == nullptr) return ok_;
    const bool written = ferror(file_) == 0;
    ok_ = fclose(file_) == 0 && written;
    file_ = nullptr;
    return ok_;
  }

 private:
  void add_tensor(const executorch::aten::Tensor& tensor) {
    fprintf(file_, "tensor\t%d\t", static_cast<int>(tensor.scalar_type()));
    for (ssize_t i = 0; i < tensor.dim(); ++i)
      fprintf(file_, "%s%d", i > 0 ? "x" : "", static_cast<int>(tensor.size(i)));
    fprintf(file_, "%s\t%zu\n", tensor.dim() > 0 ? "" : "-", tensor.nbytes());
    fwrite(tensor.const_data_ptr(), 1, tensor.nbytes(), file_);
  }

  FILE* file_ = nullptr;
  bool ok_ = true;
};

inline bool write_file(const std::string& path, const void* data, size_t bytes) {
  FILE* file = fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = fwrite(data, 1, bytes, file) == bytes;
  return fclose(file) == 0 && written;
}

}  // namespace etmem::runner
