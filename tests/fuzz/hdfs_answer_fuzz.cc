// Responses of HDFS servers over HTTP: file statuses, listings, errors.
#include <string>

#include "hearth/storage/webhdfs_answer.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body = fuzz::Text(data, size);
  fuzz::Refusable([&] { storage::ReadStatus(body, "hdfs://nn/a"); });
  fuzz::Refusable([&] { storage::ReadBoolean(body); });
  fuzz::Refusable([&] {
    for (const auto& file : storage::ReadListing(body, "hdfs://nn/f").entries) {
      // A name must never refer to a file outside its folder.
      const std::string name = file.uri.substr(12);
      if (name.empty() || name.find('/') != name.npos || name == "..") __builtin_trap();
    }
  });
  const storage::Refusal refusal = storage::ReadRefusal(403, body);
  if (refusal.text.find('\n') != refusal.text.npos || refusal.text.size() > 2000) __builtin_trap();
  return 0;
}
