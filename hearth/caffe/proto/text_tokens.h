// Splits prototxt into tokens, each with its position for error messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "hearth/base/error.h"

namespace hearth::caffe {

// A token, with a reference to its characters in the text.
struct Token {
  enum Kind { kIdentifier, kNumber, kString, kSymbol, kEnd };
  Kind kind = kEnd;
  std::string_view text;  // including the quotes of a string
  int line = 1, column = 1;

  bool Is(char symbol) const { return kind == kSymbol && text[0] == symbol; }
  // The token as quoted in messages: "'{'", "the end of the file", ...
  std::string Describe() const;
};

// Splits `text`, which must outlive it, into tokens. Skips comments and white space.
class TextTokens {
 public:
  TextTokens(std::string_view text, const std::string& file);

  const Token& peek() const { return current_; }
  Token Next();

  // Throws "file:line:column: found ..., expected ...".
  [[noreturn]] void Fail(const Token& at, std::string_view expected) const;
  [[noreturn]] void FailWith(const Token& at, std::string_view message) const;

 private:
  void SkipBlanks();
  void Advance(size_t count);
  void Scan();
  size_t NumberLength() const;
  size_t StringLength() const;

  std::string_view rest_;
  std::string file_;
  int line_ = 1, column_ = 1;
  Token current_;
};

// The bytes that a quoted token represents. Throws through `tokens` if an escape is malformed.
std::string Unquote(const Token& token, const TextTokens& tokens);

}  // namespace hearth::caffe
