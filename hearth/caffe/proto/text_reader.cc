#include "hearth/caffe/proto/text_reader.h"

#include <charconv>
#include <cstdlib>
#include <limits>

#include "hearth/caffe/proto/nearest.h"
#include "hearth/caffe/proto/text_tokens.h"

namespace hearth::caffe {
namespace {

template <typename Entries>
std::string NearestOf(std::string_view name, const Entries& entries) {
  std::vector<std::string> known;
  for (const auto& entry : entries) known.emplace_back(entry.name);
  return DidYouMean(name, known);
}

template <typename T>
constexpr std::string_view IntegerName() {
  if constexpr (std::is_same_v<T, uint32_t>) return "a whole number from 0 to 4294967295";
  if constexpr (std::is_same_v<T, int64_t>) return "a whole number of at most 64 bits";
  return "a whole number from -2147483648 to 2147483647";
}

// Recursive-descent parser of protobuf's text format: field names with values, `:` optional before
// a message, `<` instead of `{`, `,` and `;` as optional separators, and `[...]` for lists. The
// recursion depth is limited, because no type of the schema contains itself.
class TextReader {
 public:
  TextReader(std::string_view text, const std::string& file) : tokens_(text, file) {}

  void ReadFile(Message* message) {
    while (tokens_.peek().kind != Token::kEnd) ReadField(message);
    CheckRequired(*message, tokens_.peek());
  }

 private:
  void ReadField(Message* message);
  void ReadList(const Token& name, const FieldDescriptor& field, Message* message);
  void ReadValue(const Token& name, const FieldDescriptor& field, Message* message);
  void ReadBody(const MessageDescriptor& descriptor, Message* message);
  void CheckRequired(const Message& message, const Token& at);

  bool Accept(char symbol) {
    if (!tokens_.peek().Is(symbol)) return false;
    tokens_.Next();
    return true;
  }
  std::string Wanted(std::string_view what, const FieldDescriptor& field) {
    return fmt::format("{} for '{}'", what, field.name);
  }

  template <typename T>
  T ReadInteger(const FieldDescriptor& field);
  template <typename T>
  T ReadFloating(const FieldDescriptor& field);
  bool ReadBool(const FieldDescriptor& field);
  std::string ReadString(const FieldDescriptor& field);
  int32_t ReadEnum(const FieldDescriptor& field);
  template <typename T>
  T ReadScalar(const FieldDescriptor& field);

  TextTokens tokens_;
};

void TextReader::ReadField(Message* message) {
  const MessageDescriptor& descriptor = message->descriptor();
  const Token name = tokens_.Next();
  const FieldDescriptor* field =
      name.kind == Token::kIdentifier ? descriptor.Find(name.text) : nullptr;
  if (field == nullptr) {
    const std::string hint =
        name.kind == Token::kIdentifier ? NearestOf(name.text, descriptor.fields) : "";
    tokens_.Fail(name, fmt::format("a field of {}{}", descriptor.name, hint));
  }
  const bool colon = Accept(':');
  if (!colon && field->type != FieldType::kMessage) {
    tokens_.Fail(tokens_.peek(), fmt::format("':' and a value for '{}'", field->name));
  }
  if (field->repeated && tokens_.peek().Is('[')) {
    ReadList(name, *field, message);
  } else {
    ReadValue(name, *field, message);
  }
  if (!Accept(',')) Accept(';');
}

void TextReader::ReadList(const Token& name, const FieldDescriptor& field, Message* message) {
  tokens_.Next();
  // An empty list is allowed, as in protobuf.
  if (Accept(']')) return;
  do {
    ReadValue(name, field, message);
  } while (Accept(','));
  if (!Accept(']'))
    tokens_.Fail(tokens_.peek(), fmt::format("',' or ']' in the list '{}'", field.name));
}

void TextReader::ReadValue(const Token& name, const FieldDescriptor& field, Message* message) {
  // protobuf's text parser rejects this, too; its binary parser uses the last value.
  if (!field.repeated && field.Count(*message) > 0) {
    tokens_.FailWith(name, fmt::format("found '{}' a second time, expected it once in {}",
                                       field.name, message->descriptor().name));
  }
  if (field.type == FieldType::kMessage) {
    ReadBody(field.message(), &field.AddSubmessage(*message));
    return;
  }
  VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) {
    PutValue<T>(*message, field, ReadScalar<T>(field));
  });
}

void TextReader::ReadBody(const MessageDescriptor& descriptor, Message* message) {
  const Token open = tokens_.Next();
  if (!open.Is('{') && !open.Is('<'))
    tokens_.Fail(open, fmt::format("'{{' to begin a {}", descriptor.name));
  const char close = open.Is('{') ? '}' : '>';
  while (!tokens_.peek().Is(close)) {
    if (tokens_.peek().kind == Token::kEnd) {
      tokens_.Fail(tokens_.peek(), fmt::format("'{}' for the {} that begins at line {}", close,
                                               descriptor.name, open.line));
    }
    ReadField(message);
  }
  CheckRequired(*message, tokens_.Next());
}

// Reports missing required fields. `at` is the end of the message.
void TextReader::CheckRequired(const Message& message, const Token& at) {
  for (const FieldDescriptor& field : message.descriptor().fields) {
    if (!field.required || field.Count(message) > 0) continue;
    tokens_.FailWith(at, fmt::format("found a {} without '{}', which it must have",
                                     message.descriptor().name, field.name));
  }
}

template <typename T>
T TextReader::ReadInteger(const FieldDescriptor& field) {
  const bool negative = Accept('-');
  const Token token = tokens_.Next();
  const std::string expected = Wanted(IntegerName<T>(), field);
  if (token.kind != Token::kNumber) tokens_.Fail(token, expected);
  std::string_view digits = token.text;
  int base = 10;
  // As in C, a leading 0x means hexadecimal, and any other leading 0 octal. from_chars does not
  // parse prefixes.
  if (digits.size() > 2 && (digits[1] == 'x' || digits[1] == 'X')) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
  }
  uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  // The sign is a separate token. The magnitude of a signed type's minimum is one more than that of
  // its maximum. An unsigned type allows a minus sign only in -0.
  const auto most = static_cast<uint64_t>(std::numeric_limits<T>::max());
  const uint64_t limit = !negative ? most : std::is_signed_v<T> ? most + 1 : 0;
  if (error != std::errc() || end != digits.data() + digits.size() || magnitude > limit) {
    tokens_.Fail(token, expected);
  }
  return static_cast<T>(negative ? 0 - magnitude : magnitude);
}

template <typename T>
T TextReader::ReadFloating(const FieldDescriptor& field) {
  const bool negative = Accept('-');
  const Token token = tokens_.Next();
  const bool word = token.kind == Token::kIdentifier &&
                    (token.text == "inf" || token.text == "infinity" || token.text == "nan");
  if (token.kind != Token::kNumber && !word) tokens_.Fail(token, Wanted("a number", field));
  std::string text(token.text);
  // protobuf allows "1.5f", but the f of 0x1f is a digit.
  const bool hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
  if (!word && !hexadecimal && (text.back() == 'f' || text.back() == 'F')) text.pop_back();
  char* end = nullptr;
  // Uses strtof for float. Converting a double to float would round twice and may miss the nearest
  // float.
  const T value = std::is_same_v<T, float> ? std::strtof(text.c_str(), &end)
                                           : static_cast<T>(std::strtod(text.c_str(), &end));
  if (end != text.c_str() + text.size()) tokens_.Fail(token, Wanted("a number", field));
  return negative ? -value : value;
}

bool TextReader::ReadBool(const FieldDescriptor& field) {
  const Token token = tokens_.Next();
  // The spellings that protobuf accepts.
  for (std::string_view yes : {"true", "True", "t", "1"}) {
    if (token.text == yes) return true;
  }
  for (std::string_view no : {"false", "False", "f", "0"}) {
    if (token.text == no) return false;
  }
  tokens_.Fail(token, Wanted("true or false", field));
}

std::string TextReader::ReadString(const FieldDescriptor& field) {
  if (tokens_.peek().kind != Token::kString) {
    tokens_.Fail(tokens_.peek(), Wanted("a string in quotes", field));
  }
  std::string value;
  // As in C, adjacent strings are concatenated, so long texts may be split over several lines.
  while (tokens_.peek().kind == Token::kString) value += Unquote(tokens_.Next(), tokens_);
  return value;
}

int32_t TextReader::ReadEnum(const FieldDescriptor& field) {
  const EnumDescriptor& values = *field.enumeration;
  const Token token = tokens_.peek();
  if (token.kind == Token::kNumber || token.Is('-')) {
    const int32_t number = ReadInteger<int32_t>(field);
    // As in protobuf, an enum value may also be given by its number.
    if (values.Find(number)) return number;
  } else if (tokens_.Next(); token.kind == Token::kIdentifier) {
    if (const EnumValue* value = values.Find(token.text)) return value->number;
  }
  std::string names;
  for (const EnumValue& value : values.values)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", value.name);
  tokens_.Fail(token, fmt::format("one of {} for '{}'{}", names, field.name,
                                  NearestOf(token.text, values.values)));
}

template <typename T>
T TextReader::ReadScalar(const FieldDescriptor& field) {
  if constexpr (std::is_same_v<T, bool>) {
    return ReadBool(field);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return ReadString(field);
  } else if constexpr (std::is_floating_point_v<T>) {
    return ReadFloating<T>(field);
  } else {
    if (field.type == FieldType::kEnum) return static_cast<T>(ReadEnum(field));
    return ReadInteger<T>(field);
  }
}

}  // namespace

void ParseText(std::string_view text, const std::string& file, Message* message) {
  TextReader(text, file).ReadFile(message);
}

}  // namespace hearth::caffe
