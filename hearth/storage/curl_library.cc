#include "hearth/storage/curl_library.h"

#include <dlfcn.h>

#include "hearth/base/error.h"
#include "hearth/base/shared_library.h"

namespace hearth::storage {
namespace {

// TensorFlow exports its own curl and SSL symbols to the whole process. RTLD_DEEPBIND prevents
// libcurl from binding to them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbolsFirst = 0;  // not supported by sanitizers
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif

CurlLibrary LoadCurl() {
  const SharedLibrary library({"libcurl.so.4", "libcurl-gnutls.so.4"}, kOwnSymbolsFirst);
  Require(library.loaded(), ErrorCode::kUnimplemented,
          "HDFS over HTTP needs libcurl on every host ({}): install the package libcurl4 (Debian, "
          "Ubuntu) or libcurl (Red Hat, Conda), or use libhdfs with HEARTH_HDFS=libhdfs",
          library.problem());
  const auto load = [&library](const char* name, auto* function) {
    Require(library.Find(name, function), ErrorCode::kUnimplemented,
            "the libcurl of this machine lacks {}; install a newer one", name);
  };
  decltype(&curl_global_init) global_init = nullptr;
  load("curl_global_init", &global_init);
  // Must run once, before any handle exists, because curl_global_init was not thread-safe before
  // version 7.84. The initialization of the static variable below serializes the callers.
  Require(global_init(CURL_GLOBAL_ALL) == CURLE_OK, ErrorCode::kInternal,
          "libcurl could not be set up");
  CurlLibrary curl;
  load("curl_easy_init", &curl.init);
  load("curl_easy_cleanup", &curl.cleanup);
  load("curl_easy_reset", &curl.reset);
  load("curl_easy_setopt", &curl.set);
  load("curl_easy_perform", &curl.perform);
  load("curl_easy_getinfo", &curl.get);
  load("curl_easy_strerror", &curl.text_of);
  load("curl_slist_append", &curl.append);
  load("curl_slist_free_all", &curl.free_list);
  return curl;
}

}  // namespace

const CurlLibrary& Curl() {
  // If loading throws, the next call tries again.
  static const CurlLibrary library = LoadCurl();
  return library;
}

}  // namespace hearth::storage
