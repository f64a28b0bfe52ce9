// Stacks of many shapes, each with a malloc at its end.
#include <alloca.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

namespace {

void* volatile kept;

__attribute__((noinline)) void take(size_t bytes) {
  kept = malloc(bytes);
  free(kept);
}

// Deeper than what is recorded.
__attribute__((noinline)) int recursive(int depth) {
  if (depth == 0) take(100);
  return depth == 0 ? 1 : recursive(depth - 1) + 1;
}

// The stack is aligned to more than the ABI asks for: the CFA is told by an expression.
__attribute__((noinline)) void aligned(size_t bytes) {
  alignas(64) volatile char room[256];
  volatile char* more = static_cast<volatile char*>(alloca(bytes));
  room[0] = more[0] = 1;
  take(bytes);
  room[1] = more[1];
}

__attribute__((noinline)) void throwing(int depth) {
  take(200);
  if (depth == 0) throw 7;
  std::vector<int> cleaned(static_cast<size_t>(depth));
  throwing(depth - 1);
}

void handler(int) { take(300); }

void through_signals() {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  static char other[64 * 1024];
  stack_t stack = {};
  stack.ss_sp = other;
  stack.ss_size = sizeof other;
  sigaltstack(&stack, nullptr);
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

int compare(const void* a, const void* b) {
  take(400);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void through_libraries() {
  int numbers[] = {3, 1, 2};
  qsort(numbers, 3, sizeof *numbers, compare);
  std::function<void(int)> nested = [&](int n) { n == 0 ? take(500) : nested(n - 1); };
  nested(5);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 500; ++n) recursive(n % 80);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  for (int round = 0; round < 3; ++round) {
    for (int depth : {1, 10, 61, 62, 63, 64, 200}) recursive(depth);
    for (size_t bytes : {16, 1000, 5000}) aligned(bytes);
    try {
      throwing(5);
    } catch (int) {
      take(600);
    }
    through_signals();
    through_libraries();
  }
}
