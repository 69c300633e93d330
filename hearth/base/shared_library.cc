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
    const char* why = ::dlerror();  // null if RTLD_NOLOAD was set and the library is not loaded
    // Keeps only the first file's error, because the first file has the usual name. Errors of the
    // alternatives would be misleading.
    if (problem_.empty()) problem_ = why != nullptr ? why : file + " is not loaded";
  }
}

// With a null handle dlsym would search the whole process.
void* SharedLibrary::Address(const char* symbol) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

}  // namespace hearth
