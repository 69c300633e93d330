// A library loaded at run time, and its functions. Never unloaded, because its threads may run
// until the process ends.
#pragma once

#include <string>
#include <vector>

namespace hearth {

// A loaded library, or the reason why none could be loaded. Thread-safe, like the loader's
// functions.
class SharedLibrary {
 public:
  // Loads the first of `files` that can be loaded. `mode` is added to RTLD_NOW; without RTLD_GLOBAL
  // symbols stay local.
  explicit SharedLibrary(const std::vector<std::string>& files, int mode = 0);

  bool loaded() const { return handle_ != nullptr; }
  // The loader's error for the first of `files`; empty if a file was loaded.
  const std::string& problem() const { return problem_; }

  // Looks up a function; returns false and sets null if it does not exist or nothing was loaded.
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
