#include "hearth/base/hmac.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

// RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
TEST(Hmac, MatchesThePublishedVectors) {
  EXPECT_EQ(HexEncode(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(HexEncode(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HexEncode(HmacSha256(std::string(131, '\xaa'),
                                 "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hex, DecodesWhatItEncodes) {
  const std::string bytes("\x00\x7f\x80\xff", 4);
  EXPECT_EQ(HexEncode(bytes), "007f80ff");
  EXPECT_EQ(HexDecode("007F80ff"), bytes);
}

TEST(Hex, RejectsOtherTextWithoutPrintingIt) {
  for (const std::string text : {"abc", "zz", "0g", "secret!!"}) {
    try {
      HexDecode(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.message().find(text), std::string::npos);
    }
  }
}

TEST(Token, IsAFreshSecretOf256Bits) {
  const std::string token = NewToken();
  EXPECT_EQ(HexDecode(token).size(), 32u);
  EXPECT_NE(token, NewToken());
}

TEST(ConstantTimeEqual, ComparesContentAndLength) {
  EXPECT_TRUE(ConstantTimeEqual("abc", "abc"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abd"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "ab"));
}

}  // namespace
}  // namespace hearth
