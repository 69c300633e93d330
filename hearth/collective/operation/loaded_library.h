// A library loaded at run time, as a table of its functions.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/shared_library.h"

namespace hearth::collective {

// The functions of a library, or the reason why it could not be loaded.
template <typename Api>
struct Loaded {
  Api api = {};
  std::string problem;  // why it could not be loaded, or empty

  // Returns the functions. Throws kUnavailable with `problem` if it is not empty.
  const Api& Get() const {
    Require(problem.empty(), ErrorCode::kUnavailable, "{}", problem);
    return api;
  }
};

// Fills a table of functions from a shared library and remembers the first problem.
template <typename Api>
class LibraryLoader {
 public:
  // For error messages: `product` is the library's name, `hint` tells where to get it.
  LibraryLoader(const char* file, const char* product, const char* hint)
      : file_(file), hint_(hint), library_({file}) {
    if (!library_.loaded()) {
      loaded_.problem =
          fmt::format("{} cannot be loaded ({}); {}", product, library_.problem(), hint);
    }
  }

  template <typename Function>
  void operator()(const char* symbol, Function* Api::*member) {
    if (!library_.Find(symbol, &(loaded_.api.*member)) && loaded_.problem.empty()) {
      loaded_.problem = fmt::format("{} has no {}; {}", file_, symbol, hint_);
    }
  }

  Loaded<Api> Take() && { return std::move(loaded_); }

 private:
  const char* file_;
  const char* hint_;
  SharedLibrary library_;
  Loaded<Api> loaded_;
};

}  // namespace hearth::collective
