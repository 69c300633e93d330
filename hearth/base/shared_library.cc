#include "hearth/base/shared_library.h"

#include <dlfcn.h>

namespace hearth {

SharedLibrary::SharedLibrary(const std::vector<std::string>& files, int mode) {
  for (const std::string& file : files) {
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | mode);
    if (handle_ != nullptr) {
      problem_.clear();
      return;
    }
    const char* why = ::dlerror();  // none where RTLD_NOLOAD did not find it loaded
    if (problem_.empty()) problem_ = why != nullptr ? why : file + " is not loaded";
  }
}

// Without a handle dlsym would look in the whole process.
void* SharedLibrary::Address(const char* symbol) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

}  // namespace hearth
