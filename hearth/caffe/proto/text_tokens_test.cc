#include "hearth/caffe/proto/text_tokens.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::caffe {
namespace {

std::vector<std::string> Cut(std::string_view text) {
  TextTokens tokens(text, "file");
  std::vector<std::string> found;
  while (tokens.peek().kind != Token::kEnd) found.emplace_back(tokens.Next().text);
  return found;
}

TEST(TextTokens, SplitsNamesNumbersStringsAndSymbols) {
  EXPECT_EQ(Cut("a_1:-1.5e-3{'x y'}#rest"),
            (std::vector<std::string>{"a_1", ":", "-", "1.5e-3", "{", "'x y'", "}"}));
}

TEST(TextTokens, HaveLinesAndColumns) {
  TextTokens tokens("a\n  # comment\n\tb", "file");
  tokens.Next();
  EXPECT_EQ(tokens.peek().line, 3);
  EXPECT_EQ(tokens.peek().column, 2);
}

TEST(Unquote, DecodesEscapes) {
  const std::string text = R"("a\n\t\"\'\101\x42\\\0")";
  TextTokens tokens(text, "file");
  EXPECT_EQ(Unquote(tokens.Next(), tokens), std::string("a\n\t\"'AB\\\0", 9));
}

}  // namespace
}  // namespace hearth::caffe
