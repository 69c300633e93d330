#include "hearth/formats/image_keys.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "hearth/base/error.h"

namespace hearth::formats {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kStreamHeader = "\xac\xed\0\5"sv;
// Number of the first handle (baseWireHandle of the specification). Strings, classes and objects
// are numbered in the order in which they appear in the stream.
constexpr uint64_t kFirstHandle = 0x7E0000;
constexpr size_t kMaxNested = 16;  // enough for a tuple of strings and boxed numbers
// Type codes of the stream's records.
enum JavaKind : uint8_t {
  kNull = 0x70,
  kReference = 0x71,
  kClass = 0x72,
  kObject = 0x73,
  kString = 0x74,
  kBlock = 0x77,
  kEnd = 0x78,
  kLongBlock = 0x7A,
  kLongString = 0x7C,
};
// Class flags.
constexpr uint8_t kOwnWriter = 1, kSerializable = 2;

struct JavaClass;
struct JavaObject;
// Only integers and booleans are needed, so other numbers are read as 0.0. Strings are raw bytes.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string_view,
                           const JavaClass*, const JavaObject*>;

struct JavaClass {
  std::string_view name;
  uint8_t flags = 0;
  std::vector<std::pair<char, std::string_view>> fields;  // type and name
  const JavaClass* parent = nullptr;
};

struct JavaObject {
  std::vector<std::pair<std::string_view, Value>> fields;

  // Returns the field with this name; null if there is none.
  const Value* Find(std::string_view name) const {
    const auto found = std::ranges::find(fields, name, [](const auto& each) { return each.first; });
    return found == fields.end() ? nullptr : &found->second;
  }
};

[[noreturn]] void ThrowUnreadable(const char* why) {
  throw Error(ErrorCode::kInvalidArgument, why);
}

void AppendUtf8(std::string* text, uint32_t point) {
  if (point < 0x80) {
    text->push_back(static_cast<char>(point));
    return;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr unsigned kFirstByte[] = {0, 0xC0, 0xE0, 0xF0};
  text->push_back(static_cast<char>(kFirstByte[more] | point >> 6 * more));
  for (int i = more - 1; i >= 0; --i) {
    text->push_back(static_cast<char>(0x80 | (point >> 6 * i & 0x3F)));
  }
}

// Converts Java's modified UTF-8, which encodes each UTF-16 unit separately and U+0000 as two
// bytes.
std::string TextOf(std::string_view written) {
  std::string text;
  uint32_t high = 0;  // high surrogate
  for (size_t at = 0; at < written.size();) {
    const auto first = static_cast<unsigned char>(written[at]);
    const int more = first < 0x80             ? 0
                     : (first & 0xE0) == 0xC0 ? 1
                     : (first & 0xF0) == 0xE0 ? 2
                                              : -1;
    if (more < 0 || written.size() - at <= static_cast<size_t>(more)) {
      ThrowUnreadable("it holds invalid UTF-8");
    }
    uint32_t unit = more == 0 ? first : first & (0x3Fu >> more);
    for (int i = 1; i <= more; ++i) {
      const auto byte = static_cast<unsigned char>(written[at + static_cast<size_t>(i)]);
      if ((byte & 0xC0) != 0x80) ThrowUnreadable("it holds invalid UTF-8");
      unit = unit << 6 | (byte & 0x3F);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800};
    if (unit < kLeast[more] && !(more == 1 && unit == 0)) ThrowUnreadable("it holds invalid UTF-8");
    at += static_cast<size_t>(more) + 1;
    const bool is_low = unit >= 0xDC00 && unit <= 0xDFFF;
    if (is_low != (high != 0)) ThrowUnreadable("it holds an unpaired surrogate");
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      high = unit;
    } else {
      AppendUtf8(&text, is_low ? 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00) : unit);
      high = 0;
    }
  }
  if (high != 0) ThrowUnreadable("it holds an unpaired surrogate");
  return text;
}

// Reader of one serialized value. Objects become their fields, boxed numbers become plain numbers.
// Owns the objects to which its values point.
class Stream {
 public:
  explicit Stream(std::string_view data) : data_(data) {}

  Value Read() {
    if (Take(kStreamHeader.size()) != kStreamHeader)
      ThrowUnreadable("it is not a Java serialization stream");
    return Content();
  }

 private:
  std::string_view Take(uint64_t count) {
    if (count > data_.size() - at_) ThrowUnreadable("it ends in the middle of a value");
    at_ += count;
    return data_.substr(at_ - count, count);
  }

  uint64_t Number(size_t size) {
    uint64_t number = 0;
    for (const char byte : Take(size)) number = number << 8 | static_cast<unsigned char>(byte);
    return number;
  }

  uint8_t Byte() { return static_cast<uint8_t>(Number(1)); }
  std::string_view Text(size_t size_bytes) { return Take(Number(size_bytes)); }

  Value Content() {
    if (++depth_ > kMaxNested) ThrowUnreadable("its values are nested too deep for a key");
    Value value;
    switch (Byte()) {
      case kNull:
        break;
      case kReference:
        value = Referenced();
        break;
      case kClass:
        value = Class();
        break;
      case kObject:
        value = Object();
        break;
      case kString:
        value = KnownText(2);
        break;
      case kLongString:
        value = KnownText(8);
        break;
      default:
        ThrowUnreadable("it holds a value of an unexpected kind");
    }
    --depth_;
    return value;
  }

  std::string_view KnownText(size_t size_bytes) {
    const std::string_view text = Text(size_bytes);
    known_.emplace_back(text);
    return text;
  }

  Value Referenced() {
    const uint64_t number = Number(4);
    if (number < kFirstHandle || number - kFirstHandle >= known_.size()) {
      ThrowUnreadable("it refers to an unknown handle");
    }
    return known_[number - kFirstHandle];
  }

  // Reads a class: name, UID, flags, fields, annotation, superclass.
  const JavaClass* Class() {
    JavaClass& described = *classes_.emplace_back(std::make_unique<JavaClass>());
    described.name = Text(2);
    Take(8);  // serialVersionUID
    // The class gets its handle before its fields, as in the specification, because the fields'
    // type names get the next handles.
    known_.emplace_back(&described);
    described.flags = Byte();
    const uint64_t fields = Number(2);
    for (uint64_t i = 0; i < fields; ++i) {
      const char type = static_cast<char>(Byte());
      const std::string_view name = Text(2);
      if (type == 'L' || type == '[') {
        Content();  // skips the field's type name
      } else if (SizeOf(type) == 0) {
        ThrowUnreadable("a field has an unknown type code");
      }
      described.fields.emplace_back(type, name);
    }
    SkipAnnotation();
    described.parent = ClassOrNone();
    return &described;
  }

  const JavaClass* ClassOrNone() {
    const Value value = Content();
    if (std::holds_alternative<std::monostate>(value)) return nullptr;
    if (const auto* found = std::get_if<const JavaClass*>(&value)) return *found;
    ThrowUnreadable("it has a value instead of a class");
  }

  // Reads an object: its class, then for each class from the topmost superclass down the fields,
  // and an annotation if that class has a writeObject method.
  Value Object() {
    const JavaClass* described = ClassOrNone();
    if (described == nullptr) ThrowUnreadable("it has an object without a class");
    JavaObject& object = *objects_.emplace_back(std::make_unique<JavaObject>());
    const size_t handle = known_.size();
    // The object gets its handle before its fields, which may refer to it.
    known_.emplace_back(&object);
    for (const JavaClass* part : Line(described)) {
      if (!(part->flags & kSerializable)) ThrowUnreadable("one of its classes is Externalizable");
      for (const auto& [type, name] : part->fields) {
        object.fields.emplace_back(name, SizeOf(type) != 0 ? Primitive(type) : Content());
      }
      if (part->flags & kOwnWriter) SkipAnnotation();
    }
    if (described->name.starts_with("java.lang.") && object.fields.size() == 1 &&
        object.fields[0].first == "value"sv) {
      return known_[handle] = object.fields[0].second;  // a boxed number becomes its only field
    }
    return &object;
  }

  // The class and its superclasses, topmost first.
  static std::vector<const JavaClass*> Line(const JavaClass* known) {
    std::vector<const JavaClass*> line;
    for (; known != nullptr; known = known->parent) {
      if (line.size() == kMaxNested)
        ThrowUnreadable("a class has too many superclasses, or a cycle of them");
      line.push_back(known);
    }
    std::reverse(line.begin(), line.end());
    return line;
  }

  // Size of a primitive type in bytes; 0 for other types.
  static size_t SizeOf(char type) {
    switch (type) {
      case 'B':
      case 'Z':
        return 1;
      case 'C':
      case 'S':
        return 2;
      case 'F':
      case 'I':
        return 4;
      case 'D':
      case 'J':
        return 8;
      default:
        return 0;
    }
  }

  Value Primitive(char type) {
    const uint64_t bits = Number(SizeOf(type));
    switch (type) {
      case 'Z':
        return bits != 0;
      case 'B':
        return int64_t{static_cast<int8_t>(bits)};
      case 'S':
        return int64_t{static_cast<int16_t>(bits)};
      case 'I':
        return int64_t{static_cast<int32_t>(bits)};
      case 'F':
      case 'D':
        return 0.0;
      default:
        return static_cast<int64_t>(bits);
    }
  }

  void SkipAnnotation() {
    for (uint8_t kind = Byte(); kind != kEnd; kind = Byte()) {
      if (kind == kBlock) {
        Take(Number(1));
      } else if (kind == kLongBlock) {
        Take(Number(4));
      } else {
        --at_;
        Content();
      }
    }
  }

  std::string_view data_;
  size_t at_ = 0, depth_ = 0;
  std::vector<Value> known_;  // by handle
  std::vector<std::unique_ptr<JavaClass>> classes_;
  std::vector<std::unique_ptr<JavaObject>> objects_;
};

std::optional<std::string> AsText(const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  if (const auto* text = std::get_if<std::string_view>(&value)) return TextOf(*text);
  ThrowUnreadable("it has a value of another type where a string belongs");
}

std::optional<int32_t> AsNumber(const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto* number = std::get_if<int64_t>(&value);
  if (number == nullptr || *number > kMost || *number < -kMost) {
    ThrowUnreadable("an image size is not an int");  // Spark would drop the upper bits silently
  }
  return static_cast<int32_t>(*number);
}

// Values of the fields with these names. Empty if the object has other fields, too, because it is
// then not a pair.
std::vector<Value> FieldsOf(const JavaObject& object,
                            std::initializer_list<std::string_view> names) {
  std::vector<Value> found;
  if (object.fields.size() != names.size()) return found;
  for (const std::string_view name : names) {
    const Value* field = object.Find(name);
    if (field == nullptr) return {};
    found.push_back(*field);
  }
  return found;
}

ImageKey KeyOf(const Value& value) {
  const auto* object = std::get_if<const JavaObject*>(&value);
  if (object == nullptr) ThrowUnreadable("it is not a pair or tuple");
  std::vector<Value> values = FieldsOf(**object, {"first", "second"});
  if (values.empty()) values = FieldsOf(**object, {"_1", "_2"});
  if (values.empty()) values = FieldsOf(**object, {"_1", "_2", "_3", "_4", "_5", "_6"});
  if (values.empty()) ThrowUnreadable("it is neither a pair nor a tuple of two or six values");
  ImageKey key;
  key.id = AsText(values[0]);
  key.label = AsText(values[1]);
  if (values.size() == 2) {
    key.encoded = true;
    return key;
  }
  key.channels = AsNumber(values[2]);
  key.height = AsNumber(values[3]);
  key.width = AsNumber(values[4]);
  // Spark reads a number in place of a boolean as null.
  if (const auto encoded = AsNumber(values[5])) key.encoded = *encoded != 0;
  return key;
}

}  // namespace

std::optional<ImageKey> ReadImageKey(std::string_view key) {
  // Rejects large keys, because the parsed objects take some forty times the key's bytes; an id, a
  // label and sizes are short.
  if (key.size() > size_t{1} << 20) return std::nullopt;
  try {
    Stream stream(key);
    return KeyOf(stream.Read());
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace hearth::formats
