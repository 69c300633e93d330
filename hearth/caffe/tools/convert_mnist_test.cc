#include "hearth/caffe/tools/convert_mnist.h"

#include <set>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/proto/wire_reader.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr char kBigEndian3[] = {0, 0, 0, 3}, kBigEndian2[] = {0, 0, 0, 2};

std::string Number(const char (&bytes)[4]) { return {bytes, 4}; }

class ConvertMnistTest : public FileLayerTest {
 protected:
  ConvertMnistTest() {
    const std::string magic(2, '\0');
    images_ = magic + "\x08\x03" + Number(kBigEndian3) + Number(kBigEndian2) + Number(kBigEndian2) +
              "abcdefghijkl";
    labels_ = magic + "\x08\x01" + Number(kBigEndian3) + "\x05" + '\0' + "\x05";
    options_.images = Write("images", images_);
    options_.labels = Write("labels", labels_);
    options_.database = Path("db");
  }

  std::vector<std::pair<std::string, std::string>> Records() const {
    std::vector<std::pair<std::string, std::string>> records;
    const auto cursor = OpenDatabase(options_.backend, options_.database);
    for (; cursor->valid(); cursor->Next()) records.emplace_back(cursor->key(), cursor->value());
    return records;
  }

  void ExpectRefused(const std::string& sentence) {
    EXPECT_THAT([&] { ConvertMnist(options_); }, ThrowsMessage<Error>(HasSubstr(sentence)));
    EXPECT_FALSE(std::filesystem::exists(options_.database));
  }

  std::string images_, labels_;
  MnistOptions options_;
};

// A record in protobuf's encoding: channels 1, height 2, width 2, four bytes of data, label.
std::string MnistRecord(const std::string& pixels, char label) {
  return std::string("\x08\x01\x10\x02\x18\x02\x22\x04") + pixels + '\x28' + label;
}

TEST_F(ConvertMnistTest, StoresTheSameBytesAsCaffe) {
  for (const auto backend : {DataParameter::LMDB, DataParameter::LEVELDB}) {
    options_.backend = backend;
    options_.database = Path(fmt::format("db{}", static_cast<int>(backend)));
    EXPECT_EQ(ConvertMnist(options_), 3);
    const std::vector<std::pair<std::string, std::string>> expected = {
        {"00000000", MnistRecord("abcd", 5)},
        {"00000001", MnistRecord("efgh", 0)},
        {"00000002", MnistRecord("ijkl", 5)}};
    EXPECT_EQ(Records(), expected);
  }
}

TEST_F(ConvertMnistTest, PairsAreLabelledByWhetherTheirLabelsAreEqual) {
  constexpr int kItems = 50;  // each has its own byte value and one of three labels
  const std::string count = {0, 0, 0, kItems}, one = {0, 0, 0, 1};
  std::string pixels, labels;
  for (int i = 0; i < kItems; ++i) {
    pixels += static_cast<char>(i);
    labels += static_cast<char>(i % 3);
  }
  Write("images", images_.substr(0, 4) + count + one + one + pixels);
  Write("labels", labels_.substr(0, 4) + count + labels);
  EXPECT_EQ(ConvertMnistSiamese(options_), kItems);
  const auto records = Records();
  ASSERT_EQ(records.size(), kItems);
  EXPECT_EQ(records[7].first, "00000007");
  std::set<std::string> pairs;
  int alike = 0;
  for (const auto& [key, value] : records) {
    Datum datum;
    ParseWire(value, "datum", &datum);
    EXPECT_EQ(datum.channels(), 2);
    ASSERT_EQ(datum.data().size(), 2);
    EXPECT_EQ(datum.label(), datum.data()[0] % 3 == datum.data()[1] % 3 ? 1 : 0);
    alike += datum.label();
    pairs.insert(datum.data());
  }
  EXPECT_GT(pairs.size(), 40);
  EXPECT_GT(alike, 5);
  EXPECT_LT(alike, 35);
  options_.database = Path("again");
  ConvertMnistSiamese(options_);
  EXPECT_EQ(Records(), records);
}

TEST_F(ConvertMnistTest, DamagedFilesAreRejectedBeforeADatabaseIsCreated) {
  Write("images", images_.substr(0, images_.size() - 1));
  ExpectRefused("images has 11 bytes of data, but its header says 12");
  Write("images", labels_);
  ExpectRefused("images is not an idx file of bytes with 3 axes");
  Write("images", "\x1f\x8b\x08");
  ExpectRefused("images is gzipped: gunzip it first");
  Write("images", "");
  ExpectRefused("images is not an idx file");
  Write("images", images_.substr(0, 4) + std::string(4, '\0') + images_.substr(8, 8));
  ExpectRefused("axis 0 has the invalid size 0");
  Write("images", images_.substr(0, 4) + std::string(12, '\xff') + "abc");
  ExpectRefused("images: axis 1 has the invalid size 4294967295");
  Write("images", images_);
  Write("labels", labels_.substr(0, 4) + Number(kBigEndian2) + "\x01\x02");
  ExpectRefused("has 3 images");
}

TEST_F(ConvertMnistTest, AnExistingDatabaseIsLeftUnchanged) {
  ConvertMnist(options_);
  EXPECT_THAT([&] { ConvertMnist(options_); }, ThrowsMessage<Error>(HasSubstr("db")));
  EXPECT_EQ(Records().size(), 3);
}

}  // namespace
}  // namespace hearth::caffe
