#include "plugins/tensorflow/tensorflow_functions.h"

#include <dlfcn.h>

namespace hearth::tensorflow {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(Functions& functions) {
  void* library = dlopen("libtensorflow_framework.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  bool all = true;
#define HEARTH_FIND(name) all = Find(library, "TF_" #name, functions.name) && all;
  HEARTH_TENSORFLOW_FUNCTIONS(HEARTH_FIND)
#undef HEARTH_FIND
  return all;
}

}  // namespace

const Functions* FindFunctions() {
  static Functions functions;
  static const bool found = FindAll(functions);
  return found ? &functions : nullptr;
}

}  // namespace hearth::tensorflow
