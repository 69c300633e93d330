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

// Java writes the second occurrence of a value as a reference to the first. Here handle 0 is the
// class, 1 and 2 its fields' types, 3 the object and 4 the text.
TEST(ReadImageKey, FollowsReferences) {
  EXPECT_EQ(ReadImageKey(Pair(Text("7"), Reference(4))),
            (ImageKey{.id = "7", .label = "7", .encoded = true}));
  EXPECT_EQ(ReadImageKey(Pair(Text("7"), Reference(5))), std::nullopt) << "no such handle";
  EXPECT_EQ(ReadImageKey(Pair(Text("7"), "\x71" + Big(4, 4))), std::nullopt);
}

// U+0000 is encoded as two bytes, and a character beyond U+FFFF as two surrogates of three bytes
// each.
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

// The files may be untrusted, so such keys must exhaust neither the stack nor the memory.
TEST(ReadImageKey, RefusesDeepAndHugeKeys) {
  std::string deep = kHeader;
  for (int i = 0; i < 10'000; ++i)
    deep += "\x73" + Described("C" + std::to_string(i), {"_1", "_2"});
  EXPECT_EQ(ReadImageKey(deep), std::nullopt);
  EXPECT_EQ(ReadImageKey(Pair(Text("a"), Text("5")) + std::string(1 << 20, 'x')), std::nullopt);
}

// Classes of Java's library write their fields after those of their superclasses, and may append
// data.
TEST(ReadImageKey, ReadsSuperclassesAndSkipsAddedData) {
  const std::string parent = "\x72" + Utf("Base") + Big(1, 8) + "\2" + Big(1, 2) + "L" + Utf("_1") +
                             Text("Ljava/lang/Object;") + "\x78" + kNullValue;
  const auto child = [&](char flags) {
    return "\x72" + Utf("Child") + Big(1, 8) + flags + Big(1, 2) + "L" + Utf("_2") +
           Text("Ljava/lang/Object;") + "\x78" + parent;
  };
  const ImageKey expected{.id = "a", .label = "5", .encoded = true};
  EXPECT_EQ(ReadImageKey(kHeader + "\x73" + child(2) + Text("a") + Text("5")), expected);
  const std::string added = "\x77\3abc" + "\x7a"s + Big(2, 4) + "de" + Text("f") + "\x78";
  EXPECT_EQ(ReadImageKey(kHeader + "\x73" + child(3) + Text("a") + Text("5") + added), expected);
  EXPECT_EQ(ReadImageKey(kHeader + "\x73" + child(3) + Text("a") + Text("5") + "\x7a"s +
                         Big(0xffffffff, 4)),
            std::nullopt)
      << "data beyond the key's end";
}

TEST(ReadImageKey, RefusesAClassThatIsItsOwnSuperclass) {
  const std::string looped = "\x72" + Utf("Loop") + Big(1, 8) + "\2" + Big(0, 2) + "\x78";
  EXPECT_EQ(ReadImageKey(kHeader + "\x73" + looped + Reference(0)), std::nullopt);
}

TEST(ReadImageKey, AcceptsThePairOfApacheCommons) {
  EXPECT_EQ(ReadImageKey(kHeader + "\x73" + Described("Pair", {"second", "first"}) + Text("5") +
                         Text("a")),
            (ImageKey{.id = "a", .label = "5", .encoded = true}));
}

TEST(ReadImageKey, SizesAreInts) {
  const auto width_of = [](const std::string& value) -> std::optional<int32_t> {
    const auto key =
        ReadImageKey(Tuple({Text("a"), Text("5"), Integer(3), Integer(1), value, kNullValue}));
    return key ? key->width : std::nullopt;
  };
  EXPECT_EQ(width_of(Integer(INT32_MAX)), INT32_MAX);
  EXPECT_EQ(width_of(Integer(-INT32_MAX)), -INT32_MAX);
  EXPECT_EQ(width_of(Boxed("Long", 'J', INT32_MAX, 8)), INT32_MAX);
  EXPECT_EQ(width_of(Boxed("Long", 'J', uint64_t{1} << 31, 8)), std::nullopt);
  EXPECT_EQ(width_of(Boxed("Long", 'J', UINT64_MAX, 8)), -1);
  EXPECT_EQ(width_of(Boxed("Short", 'S', 0xffff, 2)), -1);
  EXPECT_EQ(width_of(Boxed("Byte", 'B', 0x80, 1)), -128);
  EXPECT_EQ(width_of(Boxed("Boolean", 'Z', 1, 1)), 1);
  EXPECT_EQ(width_of(Boxed("Double", 'D', 0, 8)), std::nullopt) << "no whole number";
  EXPECT_EQ(width_of(Boxed("Other", 'X', 0, 1)), std::nullopt) << "an unknown type code";
}

TEST(ReadImageKey, LongStringsHaveEightBytesOfLength) {
  const auto with_length = [](uint64_t length) {
    return Pair("\x7c" + Big(length, 8) + "abc", Text("5"));
  };
  EXPECT_EQ(ReadImageKey(with_length(3))->id, "abc");
  EXPECT_EQ(ReadImageKey(with_length(UINT64_MAX)), std::nullopt);
}

}  // namespace
}  // namespace hearth::formats
