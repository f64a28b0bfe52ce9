#include "python_stack.h"

#include <dlfcn.h>
#include <string.h>

#include "recorder.h"

namespace etmem::python_stack {
namespace {

/* The part of the C API that reads frames, the same names since Python 3.9. Looked up, not linked: the agent must load
 * into processes without Python. */
struct Interpreter {
  int (*is_initialized)();
  int (*holds_lock)();
  void* (*thread_state)();
  void* (*frame)(void* thread);
  void* (*back)(void* frame);
  void* (*code)(void* frame);
  int (*line)(void* frame);
  void* (*attribute)(void* object, const char* name);
  const char* (*text)(void* unicode, intptr_t* length);
  void (*release)(void* object);
  void (*clear_error)();
  bool found;
};

template <typename F>
bool look_up(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

const Interpreter& interpreter() {
  static Interpreter python;
  if (python.found) return python;
  python.found = look_up(python.is_initialized, "Py_IsInitialized") && look_up(python.holds_lock, "PyGILState_Check") &&
                 look_up(python.thread_state, "PyThreadState_Get") && look_up(python.frame, "PyThreadState_GetFrame") &&
                 look_up(python.back, "PyFrame_GetBack") && look_up(python.code, "PyFrame_GetCode") &&
                 look_up(python.line, "PyFrame_GetLineNumber") && look_up(python.attribute, "PyObject_GetAttrString") &&
                 look_up(python.text, "PyUnicode_AsUTF8AndSize") && look_up(python.release, "Py_DecRef") &&
                 look_up(python.clear_error, "PyErr_Clear");
  return python;
}

uint32_t text_of(const Interpreter& python, void* object, const char* name) {
  void* value = python.attribute(object, name);
  intptr_t length = 0;
  const char* text = value != nullptr ? python.text(value, &length) : nullptr;
  if (text == nullptr) python.clear_error();
  const uint32_t id = text != nullptr ? recorder::string(text, static_cast<size_t>(length)) : 0;
  if (value != nullptr) python.release(value);
  return id;
}

constexpr uint32_t kDepth = 128;

}  // namespace

void record(uint32_t scope) {
  const Interpreter& python = interpreter();
  if (!python.found || !python.is_initialized() || !python.holds_lock()) return;
  format::PythonFrame frames[kDepth];
  uint32_t depth = 0;
  for (void* frame = python.frame(python.thread_state()); frame != nullptr && depth < kDepth;) {
    void* code = python.code(frame);
    frames[depth++] = {text_of(python, code, "co_name"), text_of(python, code, "co_filename"),
                       static_cast<uint32_t>(python.line(frame)), 0};
    python.release(code);
    void* back = python.back(frame);
    python.release(frame);
    frame = back;
  }
  if (depth == 0) return;
  recorder::meta(format::kMetaPythonStack, format::MetaPythonStack{scope, depth}, frames, depth * sizeof *frames);
}

}  // namespace etmem::python_stack
