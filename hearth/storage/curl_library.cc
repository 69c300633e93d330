#include "hearth/storage/curl_library.h"

#include <dlfcn.h>

#include <string>

#include "hearth/base/error.h"

namespace hearth::storage {
namespace {

// TensorFlow exports a curl and an SSL of its own to the whole process; libcurl must not call
// those.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbolsFirst = 0;  // sanitizers cannot have it
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif

template <typename Function>
void LoadFunction(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  Require(*function != nullptr, ErrorCode::kUnimplemented,
          "the libcurl of this machine lacks {}; install a newer one", name);
}

CurlLibrary LoadCurl() {
  std::string why;
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL | kOwnSymbolsFirst)) != nullptr) break;
    if (why.empty()) why = dlerror();
  }
  Require(library != nullptr, ErrorCode::kUnimplemented,
          "HDFS over HTTP needs libcurl on every host ({}): install the package libcurl4 (Debian, "
          "Ubuntu) or libcurl (Red Hat, Conda), or use libhdfs with HEARTH_HDFS=libhdfs",
          why);
  decltype(&curl_global_init) global_init = nullptr;
  LoadFunction(library, "curl_global_init", &global_init);
  Require(global_init(CURL_GLOBAL_ALL) == CURLE_OK, ErrorCode::kInternal,
          "libcurl could not be set up");
  CurlLibrary curl;
  LoadFunction(library, "curl_easy_init", &curl.init);
  LoadFunction(library, "curl_easy_cleanup", &curl.cleanup);
  LoadFunction(library, "curl_easy_reset", &curl.reset);
  LoadFunction(library, "curl_easy_setopt", &curl.set);
  LoadFunction(library, "curl_easy_perform", &curl.perform);
  LoadFunction(library, "curl_easy_getinfo", &curl.get);
  LoadFunction(library, "curl_easy_strerror", &curl.text_of);
  LoadFunction(library, "curl_slist_append", &curl.append);
  LoadFunction(library, "curl_slist_free_all", &curl.free_list);
  return curl;
}

}  // namespace

const CurlLibrary& Curl() {
  // A failure is thrown again by the next call, which tries again.
  static const CurlLibrary library = LoadCurl();
  return library;
}

}  // namespace hearth::storage
