#include "hearth/formats/pickle_guard.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth::formats {
namespace {

using namespace std::string_literals;

std::string Repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Output of pickle.dumps([(1, 2.5), ("a", {"b": None})], protocol).
TEST(PickleIsSound, AcceptsWhatPicklersWrite) {
  EXPECT_TRUE(PickleIsSound(
      "\200\002]q\000(K\001G@\004\000\000\000\000\000\000\206q\001X\001\000\000\000aq\002}q\003X\001\000\000\000bq\004Ns\206q\005e."s));
  EXPECT_TRUE(PickleIsSound(
      "\200\005\225 \000\000\000\000\000\000\000]\224(K\001G@\004\000\000\000\000\000\000\206\224\214\001a\224}\224\214\001b\224Ns\206\224e."s));
}

TEST(PickleIsSound, RefusesEveryTruncation) {
  const std::string whole =
      "\200\004\225 \000\000\000\000\000\000\000]\224(K\001G@\004\000\000\000\000\000\000\206\224\214\001a\224}\224\214\001b\224Ns\206\224e."s;
  ASSERT_TRUE(PickleIsSound(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(PickleIsSound(whole.substr(0, size))) << size;
  }
}

// The unpickler allocates the memo up to the largest index; here, this would be 32 GiB of pointers.
TEST(PickleIsSound, RefusesAMemoMuchLargerThanThePickle) {
  EXPECT_FALSE(PickleIsSound("\x80\2Nr\xff\xff\xff\xff."s));
  EXPECT_FALSE(PickleIsSound("\x80\2Nh\x05."s)) << "reads what was never stored";
  EXPECT_TRUE(PickleIsSound("\x80\2Nq\0h\0\x86."s));
}

// Hashing a tuple recurses into its items, so a deeply nested dict key would overflow the stack.
TEST(PickleIsSound, RefusesDeeplyNestedTuples) {
  EXPECT_TRUE(PickleIsSound("\x80\2N" + Repeated(900, "\x85") + "."));
  EXPECT_FALSE(PickleIsSound("\x80\2N" + Repeated(1100, "\x85") + "."));
  EXPECT_FALSE(PickleIsSound("\x80\2N" + Repeated(600, "\x85q\0h\0\x86"s) + ".")) << "by the memo";
}

// MEMOIZE writes to the index that equals the number of memoized values, not to the one after the
// largest index. Example: pickle.loads(b"\x80\x04Nr\xf4\x01\x00\x000)\x85\x94h\x01.") == ((),).
TEST(PickleIsSound, CountsMemoizedValuesAsTheUnpicklerDoes) {
  const auto nested = [](int times) {
    std::string pickle = "\x80\4Nr\xd0\7\0\0000)"s;
    for (int i = 1; i <= times; ++i) {
      const std::string index = {static_cast<char>(i % 256), static_cast<char>(i / 256), 0, 0};
      pickle += "\x85\x94" + "0j"s + index;
    }
    return pickle + std::string(2000, 'N') + ".";
  };
  EXPECT_TRUE(PickleIsSound(nested(400)));
  EXPECT_FALSE(PickleIsSound(nested(1100)));
}

TEST(PickleIsSound, RefusesOpcodesThatNeedMoreThanTheStackHolds) {
  for (const std::string& body : {"."s, "N\x86."s, "Na."s, "t."s, "e."s, "0."s, "(a."s}) {
    EXPECT_FALSE(PickleIsSound("\x80\2" + body)) << body;
  }
}

// Opcodes of protocol 0, persistent ids and extension registries: no pickler writes them for rows.
TEST(PickleIsSound, RefusesOtherOpcodes) {
  for (const char op : "IFSVPQi\x82\x83\x84\x97"s) {
    EXPECT_FALSE(PickleIsSound("\x80\2"s + op + "1\n1\n.")) << static_cast<int>(op);
  }
}

TEST(PickleIsSound, TheDeepestNestingIsAThousand) {
  EXPECT_TRUE(PickleIsSound("\x80\2N" + Repeated(1000, "\x85") + "."));
  EXPECT_FALSE(PickleIsSound("\x80\2N" + Repeated(1001, "\x85") + "."));
  // Nested tuples with marks, then nested calls.
  EXPECT_TRUE(PickleIsSound("\x80\2" + Repeated(1000, "(") + Repeated(1000, "t") + "."));
  EXPECT_FALSE(PickleIsSound("\x80\2" + Repeated(1001, "(") + Repeated(1001, "t") + "."));
  EXPECT_FALSE(PickleIsSound("\x80\2N" + Repeated(1001, "NR") + "."));
}

TEST(PickleIsSound, TheLargestMemoIndexIsBelowThePicklesSize) {
  const auto with_index = [](char index) { return "\x80\2Nq"s + index + "."; };
  ASSERT_EQ(with_index(0).size(), 6u);
  EXPECT_TRUE(PickleIsSound(with_index(5)));
  EXPECT_FALSE(PickleIsSound(with_index(6)));
}

// A length near 2^64 must not wrap around.
TEST(PickleIsSound, RefusesLengthsBeyondTheEnd) {
  const std::string huge(8, '\xff');
  for (const char op : "\x8d\x8e\x96"s) {
    EXPECT_FALSE(PickleIsSound("\x80\5"s + op + huge + "text.")) << static_cast<int>(op);
    EXPECT_TRUE(PickleIsSound("\x80\5"s + op + "\4\0\0\0\0\0\0\0text."s));
    EXPECT_FALSE(PickleIsSound("\x80\5"s + op + "\6\0\0\0\0\0\0\0text."s)) << "over the stop";
  }
  for (const char op : "XBT\x8b"s) {
    EXPECT_TRUE(PickleIsSound("\x80\5"s + op + "\4\0\0\0text."s));
    EXPECT_FALSE(PickleIsSound("\x80\5"s + op + "\xff\xff\xff\xfftext."s));
  }
  EXPECT_FALSE(PickleIsSound("\x80\2\x8a\x09"s + "12345678."));
}

TEST(PickleIsSound, MarksProtectTheValuesBelowThem) {
  EXPECT_FALSE(PickleIsSound("\x80\2N(\x85t."s)) << "a tuple of what is below the mark";
  EXPECT_FALSE(PickleIsSound("\x80\2]N(a."s)) << "appends to what is below the mark";
  EXPECT_TRUE(PickleIsSound("\x80\2](Ne."s));
  EXPECT_TRUE(PickleIsSound("\x80\2N(NN1."s)) << "POP_MARK";
  EXPECT_FALSE(PickleIsSound("\x80\2N1."s));
}

TEST(PickleIsSound, IgnoresBytesAfterTheStop) { EXPECT_TRUE(PickleIsSound("\x80\2N.(((")); }

}  // namespace
}  // namespace hearth::formats
