// A delegate with a pool of its own and an accelerator beside it. It computes chains of linear layers, which
// pool_delegate.py lowers to it. With ETMEM_DISABLE all that it tells etmem compiles to nothing.
#include <executorch/runtime/backend/interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "etmem/etmem.h"

namespace {

using namespace executorch::runtime;

constexpr size_t kChunk = size_t{1} << 20;
constexpr size_t kAlignment = 64;

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Takes memory from the system in pieces of a MiB and hands out parts of them: to any profiler it is those pieces.
class Pool {
 public:
  Pool() { chunks_.reserve(64); }  // its own list is none of what it hands out

  void* take(size_t bytes) {
    bytes = rounded(bytes, kAlignment);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Chunk& chunk : chunks_) {
      if (chunk.size - chunk.used >= bytes) return from(chunk, bytes);
    }
    const size_t size = rounded(bytes, kChunk);
    void* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return nullptr;
    chunks_.push_back({static_cast<char*>(start), size, 0, 0});
    return from(chunks_.back(), bytes);
  }

  // A chunk is empty again when all that it handed out is back.
  void give_back(void* piece) {
    if (piece == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    etmem_heap_free(&heap_, piece);
    for (Chunk& chunk : chunks_) {
      char* address = static_cast<char*>(piece);
      if (address < chunk.start || address >= chunk.start + chunk.size) continue;
      if (--chunk.out == 0) chunk.used = 0;
    }
  }

 private:
  struct Chunk {
    char* start;
    size_t size, used, out;
  };

  void* from(Chunk& chunk, size_t bytes) {
    void* piece = chunk.start + chunk.used;
    chunk.used += bytes;
    ++chunk.out;
    etmem_heap_alloc(&heap_, piece, bytes);
    return piece;
  }

  std::mutex mutex_;
  std::vector<Chunk> chunks_;
  // What a piece is for is said by the tag of whoever takes it.
  [[maybe_unused]] etmem_heap heap_ = ETMEM_HEAP("pool", "delegate:PoolBackend", nullptr);
};

// Stands for a driver's buffer: shared memory by a file descriptor, as DMA-bufs are, and none of the process's own.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes) : bytes_(rounded(bytes, 4096)) {
    const int descriptor = memfd_create("accelerator", MFD_CLOEXEC);
    if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes_)) == 0) {
      data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    }
    if (descriptor >= 0) close(descriptor);
    if (ok()) etmem_heap_alloc(&heap(), data_, bytes_);
  }

  ~DeviceBuffer() {
    if (!ok()) return;
    etmem_heap_free(&heap(), data_);
    munmap(data_, bytes_);
  }

  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  bool ok() const { return data_ != MAP_FAILED; }
  float* data() const { return static_cast<float*>(data_); }

 private:
  static etmem_heap& heap() {
    static etmem_heap heap =
        ETMEM_DEVICE_HEAP(ETMEM_DMA_BUF, "accelerator", "delegate:PoolBackend", "operator_buffers");
    return heap;
  }

  size_t bytes_;
  void* data_ = MAP_FAILED;
};

Pool pool;

struct Header {
  char magic[8];
  uint32_t layers, batch;
};

struct LayerHeader {
  uint32_t inputs, outputs, relu, reserved;
};

// Weights as the kernel wants them: by input, each row padded to whole vectors.
struct Layer {
  LayerHeader shape;
  size_t row;
  float* weights;
  float* bias;
};

struct Model {
  std::vector<Layer> layers;
  size_t batch = 0;
  size_t widest = 0;
  std::unique_ptr<DeviceBuffer> device;  // inputs and outputs of the accelerator

  ~Model() {
    for (Layer& layer : layers) {
      pool.give_back(layer.weights);
      pool.give_back(layer.bias);
    }
  }
};

// Everything the blob says, checked: it comes from a file.
class Reader {
 public:
  Reader(const void* data, size_t size) : at_(static_cast<const char*>(data)), left_(size) {}

  template <typename T>
  bool read(T* out, size_t count = 1) {
    const size_t bytes = sizeof(T) * count;
    if (bytes > left_) return false;
    std::memcpy(out, at_, bytes);
    at_ += bytes;
    left_ -= bytes;
    return true;
  }

  size_t left() const { return left_; }

 private:
  const char* at_;
  size_t left_;
};

bool pack(Reader& blob, Layer& layer) {
  const size_t inputs = layer.shape.inputs, outputs = layer.shape.outputs;
  if (inputs == 0 || outputs == 0 || (inputs + 1) * outputs > blob.left() / sizeof(float)) return false;
  layer.row = rounded(outputs, kAlignment / sizeof(float));
  {
    [[maybe_unused]] const etmem::Tag tag("packed_weights");
    layer.weights = static_cast<float*>(pool.take(inputs * layer.row * sizeof(float)));
    layer.bias = static_cast<float*>(pool.take(layer.row * sizeof(float)));
  }
  if (layer.weights == nullptr || layer.bias == nullptr) return false;
  [[maybe_unused]] const etmem::Tag tag("workspace");
  float* row = static_cast<float*>(pool.take(inputs * sizeof(float)));
  if (row == nullptr) return false;
  for (size_t output = 0; output < outputs && blob.read(row, inputs); ++output) {
    for (size_t input = 0; input < inputs; ++input) layer.weights[input * layer.row + output] = row[input];
  }
  pool.give_back(row);
  return blob.read(layer.bias, outputs);
}

void compute(const Layer& layer, size_t batch, const float* in, float* out) {
  for (size_t item = 0; item < batch; ++item) {
    const float* x = in + item * layer.shape.inputs;
    float* y = out + item * layer.shape.outputs;
    std::copy(layer.bias, layer.bias + layer.shape.outputs, y);
    for (size_t input = 0; input < layer.shape.inputs; ++input) {
      const float* weights = layer.weights + input * layer.row;
      for (size_t output = 0; output < layer.shape.outputs; ++output) y[output] += x[input] * weights[output];
    }
    if (layer.shape.relu != 0) {
      for (size_t output = 0; output < layer.shape.outputs; ++output) y[output] = std::max(y[output], 0.0f);
    }
  }
}

class PoolBackend final : public BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer* processed, ArrayRef<CompileSpec>) const override {
    std::unique_ptr<Model> model(new Model);
    Reader blob(processed->data(), processed->size());
    Header header;
    if (!blob.read(&header) || std::memcmp(header.magic, "POOL1\0\0", 8) != 0) return Error::InvalidProgram;
    model->batch = header.batch;
    for (uint32_t i = 0; i < header.layers; ++i) {
      Layer layer = {};
      if (!blob.read(&layer.shape)) return Error::InvalidProgram;
      const bool packed = pack(blob, layer);
      model->layers.push_back(layer);  // in any case: what it has is given back
      if (!packed) return Error::InvalidProgram;
      model->widest = std::max({model->widest, size_t{layer.shape.inputs}, size_t{layer.shape.outputs}});
    }
    if (model->layers.empty()) return Error::InvalidProgram;
    model->device.reset(new DeviceBuffer(2 * model->batch * model->widest * sizeof(float)));
    if (!model->device->ok()) return Error::MemoryAllocationFailed;
    processed->Free();  // all that it held is packed
    return model.release();
  }

  Error execute(BackendExecutionContext&, DelegateHandle* handle, Span<EValue*> args) const override {
    const Model& model = *static_cast<Model*>(handle);
    const auto in = args[0]->toTensor();
    auto out = args[args.size() - 1]->toTensor();
    const size_t floats = model.batch * model.widest;
    if (in.nbytes() > floats * sizeof(float) || out.nbytes() > floats * sizeof(float)) return Error::InvalidArgument;
    [[maybe_unused]] const etmem::Tag tag("workspace");
    float* scratch[] = {static_cast<float*>(pool.take(floats * sizeof(float))),
                        static_cast<float*>(pool.take(floats * sizeof(float)))};
    Error error = Error::MemoryAllocationFailed;
    if (scratch[0] != nullptr && scratch[1] != nullptr) {
      std::memcpy(model.device->data(), in.const_data_ptr(), in.nbytes());
      const float* from = model.device->data();
      for (size_t i = 0; i < model.layers.size(); ++i) {
        compute(model.layers[i], model.batch, from, scratch[i % 2]);
        from = scratch[i % 2];
      }
      std::memcpy(model.device->data() + floats, from, out.nbytes());
      std::memcpy(out.mutable_data_ptr(), model.device->data() + floats, out.nbytes());
      error = Error::Ok;
    }
    pool.give_back(scratch[0]);
    pool.give_back(scratch[1]);
    return error;
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Model*>(handle); }
};

PoolBackend backend;
[[maybe_unused]] const Error registered = register_backend({"PoolBackend", &backend});

}  // namespace
