#include "hearth/rendezvous/frame.h"

#include <gtest/gtest.h>

#include "hearth/base/testing/error_testing.h"

namespace hearth::rendezvous {
namespace {

TEST(Frame, NumbersAreBigEndian) {
  EXPECT_EQ(EncodeU32(0x01020304), "\x01\x02\x03\x04");
  EXPECT_EQ(DecodeU32("\xff\x00\x00\x01"), 0xff000001u);
}

TEST(Frame, MessagesAreReadFromAnyFragmentation) {
  const std::string stream = EncodeMessage({{"a", 1}}) + EncodeMessage({{"b", "\u00e9"}});
  FrameReader reader;
  std::vector<Json> messages;
  for (const char byte : stream) {
    reader.Append({&byte, 1});
    while (auto message = reader.Next()) messages.push_back(*message);
  }
  EXPECT_EQ(messages, (std::vector<Json>{{{"a", 1}}, {{"b", "\u00e9"}}}));
}

TEST(Frame, ALongMessageIsSplitIntoFrames) {
  for (const size_t size : {kMaxFrameBytes - 8, kMaxFrameBytes - 7, 3 * kMaxFrameBytes + 5}) {
    const Json message = {{"a", std::string(size, 'x')}};  // the JSON has 8 more bytes
    const std::string stream = EncodeMessage(message) + EncodeMessage({{"b", 1}});
    const size_t frames = (size + 8 + kMaxFrameBytes - 1) / kMaxFrameBytes;
    EXPECT_EQ(EncodeMessage(message).size(), size + 8 + 4 * frames);
    FrameReader reader;
    std::vector<Json> messages;
    for (size_t at = 0; at < stream.size(); at += 100'003) {
      reader.Append(std::string_view(stream).substr(at, 100'003));
      while (auto taken = reader.Next()) messages.push_back(*taken);
    }
    EXPECT_EQ(messages, (std::vector<Json>{message, {{"b", 1}}}));
  }
}

TEST(Frame, ReadingMissingBytesDoesNotReadAhead) {
  const Json message = {{"a", std::string(kMaxFrameBytes, 'x')}};
  const std::string stream = EncodeMessage(message) + "rows";
  FrameReader reader;
  size_t at = 0;
  std::optional<Json> taken;
  while (!(taken = reader.Next())) {
    const size_t count = reader.missing();
    ASSERT_GT(count, 0u);
    reader.Append(std::string_view(stream).substr(at, count));
    at += count;
  }
  EXPECT_EQ(*taken, message);
  EXPECT_EQ(stream.substr(at), "rows");
}

TEST(Frame, APartialFrameMustBeTheLastOfItsMessage) {
  FrameReader reader;
  reader.Append("\x80" + EncodeU32(5).substr(1) + "{\"a\":");
  EXPECT_THROW(reader.Next(), Error);
}

TEST(Frame, AnEndlessMessageIsRejected) {
  FrameReader reader;
  const std::string part =
      "\x80" + EncodeU32(kMaxFrameBytes).substr(1) + std::string(kMaxFrameBytes, 'x');
  for (size_t held = 0; held < kMaxMessageBytes; held += kMaxFrameBytes) {
    reader.Append(part);
    EXPECT_FALSE(reader.Next());
  }
  reader.Append(part.substr(0, 4));
  EXPECT_THROW(reader.Next(), Error);
}

TEST(Frame, AnOversizedMessageIsRejectedBeforeItIsSent) {
  EXPECT_THROW(EncodeMessage({{"value", std::string(kMaxMessageBytes, 'x')}}), Error);
}

TEST(Frame, AnOversizedLengthIsRejectedBeforeItsBytesArrive) {
  FrameReader reader;
  reader.Append(EncodeU32(kMaxFrameBytes + 1));
  try {
    reader.Next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  }
}

TEST(Frame, TextOtherThanAJsonObjectIsRejected) {
  for (const std::string text : {"", "{", "[1]", "7", "\xff"}) {
    FrameReader reader;
    reader.Append(EncodeU32(static_cast<uint32_t>(text.size())) + text);
    EXPECT_THROW(reader.Next(), Error) << text;
  }
}

TEST(Frame, DeepNestingIsRejected) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  for (const auto& [depth, taken] :
       {std::pair<size_t, bool>{63, true}, {64, false}, {500'000, false}}) {
    FrameReader reader;
    reader.Append(EncodeU32(static_cast<uint32_t>(nested(depth).size())) + nested(depth));
    if (taken) {
      EXPECT_TRUE(reader.Next());
    } else {
      EXPECT_THROW(reader.Next(), Error);
    }
  }
}

TEST(Frame, BracketsInStringsAreNotNesting) {
  const Json message = {{std::string(99, '['), "\\\"" + std::string(99, '{')}, {"b", {1, "\""}}};
  FrameReader reader;
  reader.Append(EncodeMessage(message));
  EXPECT_EQ(reader.Next(), message);
}

TEST(Frame, InvalidUtf8IsReplaced) {
  FrameReader reader;
  reader.Append(EncodeMessage({{"path", "caf\xe9"}}));
  EXPECT_EQ(reader.Next()->at("path"), "caf\xef\xbf\xbd");
}

TEST(Frame, ReportsHowManyBytesOfALengthAreMissing) {
  FrameReader reader;
  const std::string frame = EncodeU32(2) + "{}";
  for (size_t at = 0; at < 4; ++at) {
    EXPECT_EQ(reader.missing(), 4 - at);
    reader.Append(frame.substr(at, 1));
    EXPECT_FALSE(reader.Next());
  }
  EXPECT_EQ(reader.missing(), 2u);
  reader.Append("{");
  EXPECT_EQ(reader.missing(), 1u);
  reader.Append("}");
  EXPECT_EQ(reader.Next(), Json::object());
  EXPECT_EQ(reader.missing(), 4u);
}

TEST(Frame, NumbersKeepAllTheirBits) {
  const Json message = {{"u", UINT64_MAX}, {"i", INT64_MIN}, {"f", 0.1}};
  FrameReader reader;
  reader.Append(EncodeMessage(message));
  EXPECT_EQ(reader.Next(), message);
}

TEST(Frame, ErrorsCountTheMessagesBytes) {
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"[1, 2]", "a control message of 6 bytes is not a JSON object"},
           {"", "a control message of 0 bytes is not a JSON object"}}) {
    FrameReader reader;
    reader.Append(EncodeU32(static_cast<uint32_t>(text.size())) + text);
    EXPECT_EQ(Thrown([&] { reader.Next(); }).message(), part);
  }
}

}  // namespace
}  // namespace hearth::rendezvous
