#include "hearth/caffe/proto/wire_reader.h"

#include <gmock/gmock.h>

#include <random>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/testing/fails_testing.h"
#include "hearth/caffe/proto/wire_writer.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

template <typename M>
M Parse(const std::string& bytes) {
  M message;
  ParseWire(bytes, "file", &message);
  return message;
}

NetParameter SmallModel() {
  NetParameter net;
  net.set_name("model");
  for (int i = 0; i < 3; ++i) {
    LayerParameter* layer = net.add_layer();
    layer->set_name("ip" + std::to_string(i));
    layer->set_phase(TEST);
    layer->add_propagate_down(true);
    BlobProto* blob = layer->add_blobs();
    blob->mutable_shape()->add_dim(5);
    *blob->mutable_data() = {1, 2, 3, 4, 5.5f};
  }
  return net;
}

TEST(ParseWire, ReadsProtobufsEncoding) {
  // BlobProto{shape{dim: 2 dim: 1} data: [1, -2]} and a BlobShape with unpacked dims. Both are
  // encoded by hand according to protobuf's specification.
  const auto packed =
      Parse<BlobProto>(std::string("\x2a\x08\0\0\x80\x3f\0\0\0\xc0\x3a\x04\x0a\x02\x02\x01", 16));
  EXPECT_THAT(packed.data(), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(packed.shape().dim(), ElementsAre(2, 1));
  const auto single =
      Parse<BlobProto>(std::string("\x2d\0\0\x80\x3f\x2d\0\0\0\xc0\x3a\x04\x08\x02\x08\x01", 16));
  EXPECT_THAT(single.data(), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(single.shape().dim(), ElementsAre(2, 1));
}

TEST(ParseWire, ReadsNegativeNumbersOfTenBytes) {
  SolverParameter solver;
  solver.set_random_seed(-5);
  solver.set_device_id(-1);
  const auto again = Parse<SolverParameter>(WireBytes(solver));
  EXPECT_EQ(again.random_seed(), -5);
  EXPECT_EQ(again.device_id(), -1);
}

TEST(ParseWire, SkipsUnknownFieldsOfEveryWireType) {
  // Unknown fields: 900 (varint), 901 (64 bit), 902 (bytes), 903 (32 bit), 904 (a group that
  // contains a group).
  const std::string unknown(
      "\xa0\x38\x05\xa9\x38\1\2\3\4\5\6\7\x08\xb2\x38\x02hi\xbd\x38\1\2\3\4"
      "\xc3\x38\x0b\x08\x01\x0c\xc4\x38",
      32);
  SolverState state;
  state.set_iter(7);
  EXPECT_EQ(Parse<SolverState>(unknown + WireBytes(state)).iter(), 7);
}

TEST(ParseWire, TreatsAnUnknownEnumValueAsAbsent) {
  const auto state = Parse<NetState>(std::string("\x08\x07\x10\x02", 4));
  EXPECT_FALSE(state.has_phase());
  EXPECT_EQ(state.level(), 2);
}

TEST(ParseWire, NamesTheFieldWhereAFileIsTruncated) {
  const std::string bytes = WireBytes(SmallModel());
  EXPECT_THAT([&] { Parse<NetParameter>(bytes.substr(0, bytes.size() - 30)); },
              Fails("file: damaged at byte"));
  EXPECT_THAT([] { Parse<BlobProto>(std::string("\x2a\x08\0\0\x80", 5)); },
              Fails("damaged at byte 2 of 5: unexpected end of data in data"));
}

TEST(ParseWire, RejectsAWrongWireType) {
  EXPECT_THAT([] { Parse<NetState>(std::string("\x0a\x01\x01", 3)); },
              Fails("wrong type in phase"));
  EXPECT_THAT([] { Parse<BlobProto>(std::string("\x2a\x03\0\0\x80", 5)); },
              Fails("not a multiple"));
  EXPECT_THAT([] { Parse<NetState>(std::string("\x06\x01", 2)); },
              Fails("impossible field number"));
  EXPECT_THAT([] { Parse<NetState>(std::string(200, '\x83')); }, Fails("damaged"));
}

// A truncation is reported unless it is between two fields. No byte makes the reader crash or hang.
TEST(ParseWire, SurvivesRandomTruncationAndCorruption) {
  const std::string bytes = WireBytes(SmallModel());
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes.substr(0, random() % (bytes.size() + 1));
    for (int i = round % 4; i > 0 && !damaged.empty(); --i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    try {
      Parse<NetParameter>(damaged);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    }
  }
}

TEST(ParseWire, RejectsDeeplyNestedGroups) {
  std::string bytes;
  for (int i = 0; i < 10000; ++i) bytes += "\xc3\x38";
  EXPECT_THAT([&] { Parse<NetState>(bytes); }, Fails("nested too deeply"));
}

}  // namespace
}  // namespace hearth::caffe
