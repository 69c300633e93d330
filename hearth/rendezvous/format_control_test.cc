// Compares the example bytes in docs/format_control.md with the code's output.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "hearth/base/hmac.h"
#include "hearth/rendezvous/frame.h"
#include "hearth/rendezvous/handshake.h"

namespace hearth::rendezvous {
namespace {

// The hex text after each name in the document's last block.
std::map<std::string, std::string> WorkedBytes() {
  std::ifstream document(HEARTH_TEST_DATA "/../../docs/format_control.md");
  std::map<std::string, std::string> bytes;
  std::string line, name;
  for (bool inside = false; std::getline(document, line);) {
    if (line == "```") {
      inside = !inside;
    } else if (inside && !line.starts_with(" ")) {
      name = line;
    } else if (inside) {
      bytes[name] += line.substr(line.find_first_not_of(' '));
    }
  }
  return bytes;
}

TEST(FormatControl, DocumentedBytesMatchTheCode) {
  auto documented = WorkedBytes();
  ASSERT_EQ(documented.size(), 4u);
  std::string token;
  for (int i = 0; i < 32; ++i) token += "42";
  const Credentials credentials(token, "control");
  const std::string hello = MakeHello(std::string(32, '\xaa'));
  const std::string claim = MakeClaim(credentials, hello, std::string(32, '\xbb'), {3, 1});
  EXPECT_EQ(documented["hello"], HexEncode(hello));
  EXPECT_EQ(documented["claim"], HexEncode(claim));
  EXPECT_EQ(documented["verdict"],
            HexEncode(MakeVerdict(credentials, hello, claim, Verdict::kAccepted, 3)));
  EXPECT_EQ(documented["frame"], HexEncode(EncodeMessage({{"type", "heartbeat"}})));
  EXPECT_EQ(hello.size(), kHelloBytes);
  EXPECT_EQ(claim.size(), kClaimBytes);
}

}  // namespace
}  // namespace hearth::rendezvous
