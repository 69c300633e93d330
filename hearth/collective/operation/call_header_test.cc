#include "hearth/collective/operation/call_header.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace hearth::collective {
namespace {

using Bytes = std::array<unsigned char, sizeof(CallHeader)>;

// The example in docs/collective_reference.md. Each line has an offset and 16 bytes; lines of zeros
// are omitted.
Bytes DocumentedBytes() {
  std::ifstream document(HEARTH_TEST_DATA "/../../docs/collective_reference.md");
  std::string line;
  while (std::getline(document, line) && line != "## Header of a call") continue;
  while (std::getline(document, line) && line != "```") continue;
  Bytes bytes = {};
  while (std::getline(document, line) && line != "```") {
    std::istringstream words(line);
    size_t at = 0;
    words >> std::hex >> at;
    for (unsigned byte = 0; words >> byte; ++at) {
      if (at < bytes.size()) bytes[at] = static_cast<unsigned char>(byte);
    }
  }
  return bytes;
}

TEST(CallHeader, HasTheDocumentedBytes) {
  Call call = {.operation = Operation::kAllReduce, .bytes = 24, .location = 5, .step = 7};
  call.SetName("conv1");
  call.SetSignature(SignatureOf("float32", std::array<int64_t, 2>{2, 3}));
  const CallHeader header(call, 1);
  Bytes bytes;
  std::memcpy(bytes.data(), &header, bytes.size());
  EXPECT_EQ(bytes, DocumentedBytes());
}

TEST(CallHeader, DescribesItsCall) {
  EXPECT_EQ(CallHeader({.operation = Operation::kBarrier}, 3).Describe(), "barrier");
}

}  // namespace
}  // namespace hearth::collective
