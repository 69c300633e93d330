#include "hearth/caffe/proto/text_tokens.h"

#include <algorithm>

namespace hearth::caffe {
namespace {

constexpr size_t kLongestQuote = 40;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character that a single-character escape stands for, or 0.
char SimpleEscape(char c) {
  constexpr std::string_view kNames = "abfnrtv\\'\"?";
  constexpr std::string_view kBytes = "\a\b\f\n\r\t\v\\'\"?";
  const size_t at = kNames.find(c);
  return at == kNames.npos ? '\0' : kBytes[at];
}

// Reads up to `most` digits of `base` at `at`, and moves `at` past them. Returns -1 if there are
// none.
int DigitsAt(std::string_view text, size_t* at, int base, size_t most) {
  int value = -1;
  for (size_t count = 0; count < most && *at < text.size(); ++count, ++*at) {
    const int digit = HexValue(text[*at]);
    if (digit < 0 || digit >= base) break;
    value = std::max(value, 0) * base + digit;
  }
  return value;
}

}  // namespace

std::string Token::Describe() const {
  if (kind == kEnd) return "the end of the file";
  if (text.size() > kLongestQuote) return fmt::format("'{}...'", text.substr(0, kLongestQuote));
  return kind == kString ? std::string(text) : fmt::format("'{}'", text);
}

TextTokens::TextTokens(std::string_view text, const std::string& file) : rest_(text), file_(file) {
  Scan();
}

// The lexer reads one token ahead, which is all that the grammar needs.
Token TextTokens::Next() {
  const Token token = current_;
  if (token.kind != Token::kEnd) Scan();
  return token;
}

void TextTokens::Fail(const Token& at, std::string_view expected) const {
  FailWith(at, fmt::format("found {}, expected {}", at.Describe(), expected));
}

void TextTokens::FailWith(const Token& at, std::string_view message) const {
  Throw(ErrorCode::kInvalidArgument, "{}:{}:{}: {}", file_, at.line, at.column, message);
}

// Columns are counted in bytes, starting at 1.
void TextTokens::Advance(size_t count) {
  for (char c : rest_.substr(0, count)) {
    column_ = c == '\n' ? 1 : column_ + 1;
    line_ += c == '\n';
  }
  rest_.remove_prefix(count);
}

void TextTokens::SkipBlanks() {
  while (!rest_.empty()) {
    if (rest_[0] == '#') {
      Advance(std::min(rest_.find('\n'), rest_.size()));
    } else if (std::string_view(" \t\r\n\v\f").find(rest_[0]) != std::string_view::npos) {
      Advance(1);
    } else {
      return;
    }
  }
}

// Includes letters and dots that cannot be part of a number, so that "12abc" is one malformed
// number instead of a number and the name of the next field.
size_t TextTokens::NumberLength() const {
  const bool hexadecimal = rest_.starts_with("0x") || rest_.starts_with("0X");
  size_t length = 1;
  for (; length < rest_.size(); ++length) {
    const char c = rest_[length], before = rest_[length - 1];
    const bool exponent_sign =
        (c == '+' || c == '-') && (before == 'e' || before == 'E') && !hexadecimal;
    if (!IsDigit(c) && !IsLetter(c) && c != '.' && !exponent_sign) break;
  }
  return length;
}

// Length with both quotes, or 0 if the line ends before the closing quote. A character after a
// backslash does not end the string.
size_t TextTokens::StringLength() const {
  for (size_t i = 1; i < rest_.size() && rest_[i] != '\n'; ++i) {
    if (rest_[i] == rest_[0]) return i + 1;
    if (rest_[i] == '\\') ++i;
  }
  return 0;
}

void TextTokens::Scan() {
  SkipBlanks();
  current_ = Token{Token::kEnd, {}, line_, column_};
  if (rest_.empty()) return;
  const char c = rest_[0];
  size_t length = 1;
  if (IsLetter(c)) {
    current_.kind = Token::kIdentifier;
    while (length < rest_.size() && (IsLetter(rest_[length]) || IsDigit(rest_[length]))) ++length;
  } else if (IsDigit(c) || (c == '.' && rest_.size() > 1 && IsDigit(rest_[1]))) {
    current_.kind = Token::kNumber;
    length = NumberLength();
  } else if (c == '"' || c == '\'') {
    current_.kind = Token::kString;
    length = StringLength();
    if (length == 0)
      FailWith(current_, "found a string without its closing quote on the same line");
  } else if (std::string_view("{}<>[]:,;-").find(c) != std::string_view::npos) {
    current_.kind = Token::kSymbol;
  } else if (c > ' ' && c <= '~') {
    FailWith(current_,
             fmt::format("found the character '{}', which is allowed only inside a string", c));
  } else {
    FailWith(current_,
             fmt::format("found the byte 0x{:02x}, expected text: is this a prototxt file?",
                         static_cast<unsigned char>(c)));
  }
  current_.text = rest_.substr(0, length);
  Advance(length);
}

std::string Unquote(const Token& token, const TextTokens& tokens) {
  const std::string_view text = token.text.substr(1, token.text.size() - 2);
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      bytes += text[i++];
      continue;
    }
    if (++i < text.size() && SimpleEscape(text[i])) {
      bytes += SimpleEscape(text[i++]);
      continue;
    }
    // Reads \x and up to two hexadecimal digits, or up to three octal digits, which may exceed a
    // byte.
    const bool hexadecimal = i < text.size() && (text[i] == 'x' || text[i] == 'X');
    i += hexadecimal;
    const int value = DigitsAt(text, &i, hexadecimal ? 16 : 8, hexadecimal ? 2 : 3);
    if (value < 0 || value > 255)
      tokens.FailWith(token, "found a string with an unknown \\ escape");
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace hearth::caffe
