#pragma once

// Disables the deprecation warning for CURLOPT_PROTOCOLS. Some hosts' libcurl is too old for its
// successor, CURLOPT_PROTOCOLS_STR.
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

namespace hearth::storage {

// libcurl, loaded on the first access over HTTP. Programs that only read local files do not need
// it.
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

// Throws kUnimplemented, naming the package, if the host has no libcurl.
const CurlLibrary& Curl();

}  // namespace hearth::storage
