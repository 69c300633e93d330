// A library that is loaded at run time, as a table of its functions. Stays loaded: threads of its
// own may still run when the last group ends.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective {

template <typename Api>
struct Loaded {
  Api api = {};
  std::string problem;  // why there is none, or empty

  // Throws kUnavailable where there is a problem.
  const Api& Get() const {
    Require(problem.empty(), ErrorCode::kUnavailable, "{}", problem);
    return api;
  }
};

template <typename Api>
class LibraryLoader {
 public:
  // `product` and `hint`: what it is and where to get it, for errors.
  LibraryLoader(const char* file, const char* product, const char* hint)
      : file_(file), hint_(hint), library_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      loaded_.problem = fmt::format("{} cannot be loaded ({}); {}", product, ::dlerror(), hint);
    }
  }

  template <typename Function>
  void operator()(const char* symbol, Function* Api::*member) {
    if (library_ == nullptr) return;
    Function*& function = loaded_.api.*member;
    function = reinterpret_cast<Function*>(::dlsym(library_, symbol));
    if (function == nullptr && loaded_.problem.empty()) {
      loaded_.problem = fmt::format("{} has no {}; {}", file_, symbol, hint_);
    }
  }

  Loaded<Api> Take() && { return std::move(loaded_); }

 private:
  const char* file_;
  const char* hint_;
  void* library_;
  Loaded<Api> loaded_;
};

}  // namespace hearth::collective
