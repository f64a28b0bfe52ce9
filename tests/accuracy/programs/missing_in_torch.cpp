/* What libraries of ExecuTorch before 1.4 ask of torch and torch 2.13 no longer has. Never called here: no tensor of
 * torch's reaches them. */
#include <cstdlib>

namespace c10 {
struct StorageImpl;
namespace impl::cow {
__attribute__((visibility("default"))) void materialize_cow_storage(StorageImpl&) { std::abort(); }
}  // namespace impl::cow
}  // namespace c10
