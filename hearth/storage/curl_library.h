// libcurl, loaded when the first file is reached over HTTP: programs that read local files alone
// need none on their machine, and a start loads none.
#pragma once

#define CURL_DISABLE_DEPRECATION  // CURLOPT_PROTOCOLS: its successor is too new for some hosts
#include <curl/curl.h>

namespace hearth::storage {

struct CurlLibrary {
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_reset) reset = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) get = nullptr;
  decltype(&curl_easy_strerror) text_of = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_list = nullptr;
};

// Throws kUnimplemented, which names the package, where the host has none.
const CurlLibrary& Curl();

}  // namespace hearth::storage
