// A library that is loaded at run time, and its functions. Stays loaded until the process ends:
// threads of its own may run until then.
#pragma once

#include <string>
#include <vector>

namespace hearth {

// Thread-safe, as the functions of the loader are.
class SharedLibrary {
 public:
  // The first of `files` that can be loaded. `mode` is added to RTLD_NOW; symbols stay local
  // without RTLD_GLOBAL.
  explicit SharedLibrary(const std::vector<std::string>& files, int mode = 0);

  bool loaded() const { return handle_ != nullptr; }
  // Why the first file could not be loaded, in the loader's words. Empty where one was.
  const std::string& problem() const { return problem_; }

  // Whether it has the function; null if not, and where nothing was loaded.
  template <typename Function>
  bool Find(const char* symbol, Function** function) const {
    *function = reinterpret_cast<Function*>(Address(symbol));
    return *function != nullptr;
  }

 private:
  void* Address(const char* symbol) const;

  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace hearth
