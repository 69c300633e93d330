#include "hearth/formats/image_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::formats {
namespace {

using namespace std::string_literals;

std::string Big(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes; i-- > 0;) text += static_cast<char>(value >> 8 * i);
  return text;
}

std::string Utf(const std::string& text) { return Big(text.size(), 2) + text; }

// Parts of a stream, as java.io.ObjectOutputStream writes them.
const std::string kHeader = "\xac\xed\0\5"s;
const std::string kNullValue = "\x70";

std::string Text(const std::string& text) { return "\x74" + Utf(text); }
std::string Reference(uint32_t handle) { return "\x71" + Big(0x7E0000 + handle, 4); }

// A class description with fields of type Object. `flags` 2: Serializable.
std::string Described(const std::string& name, const std::vector<std::string>& fields,
                      char flags = 2) {
  std::string text = "\x72" + Utf(name) + Big(1, 8) + flags + Big(fields.size(), 2);
  for (const std::string& field : fields) text += "L" + Utf(field) + Text("Ljava/lang/Object;");
  return text + "\x78" + kNullValue;
}

std::string Boxed(const std::string& type, char code, uint64_t value, int bytes) {
  return "\x73\x72" + Utf("java.lang." + type) + Big(1, 8) + "\2" + Big(1, 2) + code +
         Utf("value") + "\x78" + kNullValue + Big(value, bytes);
}
std::string Integer(int32_t value) {
  return Boxed("Integer", 'I', static_cast<uint32_t>(value), 4);
}

std::string Pair(const std::string& first, const std::string& second) {
  return kHeader + "\x73" + Described("scala.Tuple2", {"_1", "_2"}) + first + second;
}

std::string Tuple(const std::vector<std::string>& values) {
  std::string text =
      kHeader + "\x73" + Described("scala.Tuple6", {"_1", "_2", "_3", "_4", "_5", "_6"});
  for (const std::string& value : values) text += value;
  return text;
}

std::string SixValues() {
  return Tuple(
      {Text("id 7"), Text("3"), Integer(1), Integer(28), Integer(28), Boxed("Boolean", 'Z', 0, 1)});
}

TEST(ReadImageKey, ReadsAPairAsAnEncodedImage) {
  const auto key = ReadImageKey(Pair(Text("a.jpg"), Text("5")));
  EXPECT_EQ(key, (ImageKey{.id = "a.jpg", .label = "5", .encoded = true}));
}

TEST(ReadImageKey, ReadsATupleWithItsSizes) {
  EXPECT_EQ(
      ReadImageKey(SixValues()),
      (ImageKey{
          .id = "id 7", .label = "3", .channels = 1, .height = 28, .width = 28, .encoded = false}));
}

TEST(ReadImageKey, NullsAreEmpty) {
  EXPECT_EQ(ReadImageKey(Tuple(std::vector<std::string>(6, kNullValue))), ImageKey{});
}

// Java writes a value that occurs twice as a reference to the first: handle 0 is the class, 1 and 2
// its fields' types, 3 the object and 4 the text.
TEST(ReadImageKey, FollowsReferences) {
  EXPECT_EQ(ReadImageKey(Pair(Text("7"), Reference(4))),
            (ImageKey{.id = "7", .label = "7", .encoded = true}));
  EXPECT_EQ(ReadImageKey(Pair(Text("7"), Reference(5))), std::nullopt) << "no such handle";
  EXPECT_EQ(ReadImageKey(Pair(Text("7"), "\x71" + Big(4, 4))), std::nullopt);
}

// U+0000 is two bytes, and characters beyond U+FFFF are two surrogates of three bytes.
TEST(ReadImageKey, ConvertsJavasModifiedUtf8) {
  const auto id_of = [](const std::string& text) {
    const auto key = ReadImageKey(Pair(Text(text), Text("")));
    return key ? key->id : std::nullopt;
  };
  EXPECT_EQ(id_of("a\xc0\x80z"), "a\0z"s);
  EXPECT_EQ(id_of("\xed\xa0\xbd\xed\xb8\x80"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(id_of("\xc3\xa4"), "\xc3\xa4");
  for (const char* damaged :
       {"\xed\xa0\xbd", "\xed\xb8\x80", "\xc3", "\xc1\x81", "\xff", "\xc3z"}) {
    EXPECT_EQ(id_of(damaged), std::nullopt) << damaged;
  }
}

TEST(ReadImageKey, EveryTruncationIsRefused) {
  const std::string whole = SixValues();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(ReadImageKey(whole.substr(0, size)), std::nullopt) << size;
  }
}

TEST(ReadImageKey, RefusesValuesOfOtherTypes) {
  EXPECT_EQ(ReadImageKey(Pair(Integer(1), Text("5"))), std::nullopt) << "a number as an id";
  EXPECT_EQ(
      ReadImageKey(Tuple({Text("a"), Text("5"), Text("1"), Integer(1), Integer(1), kNullValue})),
      std::nullopt)
      << "a text as a size";
  EXPECT_EQ(ReadImageKey(Tuple({Text("a"), Text("5"), Boxed("Long", 'J', uint64_t{1} << 40, 8),
                                Integer(1), Integer(1), kNullValue})),
            std::nullopt)
      << "a size that Spark would truncate";
  EXPECT_EQ(ReadImageKey(kHeader + Text("a")), std::nullopt) << "neither a pair nor a tuple";
  EXPECT_EQ(ReadImageKey(kHeader + "\x73" + Described("Other", {"a", "b"}) + Text("1") + Text("2")),
            std::nullopt);
  EXPECT_EQ(ReadImageKey(kHeader + "\x73" + Described("Own", {"_1", "_2"}, 4) + Text("1")),
            std::nullopt)
      << "Externalizable: its format is the class's own";
}

// The bytes come from files of others: neither may exhaust the stack or the memory.
TEST(ReadImageKey, RefusesDeepAndHugeKeys) {
  std::string deep = kHeader;
  for (int i = 0; i < 10'000; ++i)
    deep += "\x73" + Described("C" + std::to_string(i), {"_1", "_2"});
  EXPECT_EQ(ReadImageKey(deep), std::nullopt);
  EXPECT_EQ(ReadImageKey(Pair(Text("a"), Text("5")) + std::string(1 << 20, 'x')), std::nullopt);
}

}  // namespace
}  // namespace hearth::formats
