#include "hearth/rendezvous/frame.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::rendezvous {
namespace {

TEST(Frame, NumbersAreBigEndian) {
  EXPECT_EQ(EncodeU32(0x01020304), "\x01\x02\x03\x04");
  EXPECT_EQ(DecodeU32("\xff\x00\x00\x01"), 0xff000001u);
}

TEST(Frame, MessagesComeOutOfAnyCutOfTheStream) {
  const std::string stream = EncodeFrame({{"a", 1}}) + EncodeFrame({{"b", "\u00e9"}});
  FrameReader reader;
  std::vector<Json> messages;
  for (const char byte : stream) {
    reader.Append({&byte, 1});
    while (auto message = reader.Next()) messages.push_back(*message);
  }
  EXPECT_EQ(messages, (std::vector<Json>{{{"a", 1}}, {{"b", "\u00e9"}}}));
}

TEST(Frame, TooLargeMessageIsRefusedBeforeItIsSent) {
  EXPECT_THROW(EncodeFrame({{"value", std::string(kMaxFrameBytes, 'x')}}), Error);
}

TEST(Frame, TooLargeLengthIsRefusedBeforeTheBytesCome) {
  FrameReader reader;
  reader.Append(EncodeU32(kMaxFrameBytes + 1));
  try {
    reader.Next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  }
}

TEST(Frame, WhatIsNoJsonObjectIsRefused) {
  for (const std::string text : {"", "{", "[1]", "7", "\xff"}) {
    FrameReader reader;
    reader.Append(EncodeU32(static_cast<uint32_t>(text.size())) + text);
    EXPECT_THROW(reader.Next(), Error) << text;
  }
}

TEST(Frame, DeepNestingIsRefusedBeforeItCanOverflowTheStack) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  for (const auto& [depth, taken] : {std::pair<size_t, bool>{60, true}, {500'000, false}}) {
    FrameReader reader;
    reader.Append(EncodeU32(static_cast<uint32_t>(nested(depth).size())) + nested(depth));
    if (taken) {
      EXPECT_TRUE(reader.Next());
    } else {
      EXPECT_THROW(reader.Next(), Error);
    }
  }
}

TEST(Frame, TextThatIsNoUtf8StillTravels) {
  FrameReader reader;
  reader.Append(EncodeFrame({{"path", "caf\xe9"}}));
  EXPECT_EQ(reader.Next()->at("path"), "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace hearth::rendezvous
