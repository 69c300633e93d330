#include "hearth/caffe/tools/convert_cifar.h"

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr size_t kPixels = 3072;

std::string Image(char label, char shade) { return label + std::string(kPixels, shade); }

class ConvertCifarTest : public FileLayerTest {
 protected:
  ConvertCifarTest() {
    std::filesystem::create_directories(Path("in"));
    std::filesystem::create_directories(Path("out"));
    options_ = {.input = Path("in"), .output = Path("out")};
    for (char batch = 1; batch <= 5; ++batch) {
      const std::string second = batch == 2 ? Image(9, '\xff') : "";
      Write(fmt::format("in/data_batch_{}.bin", static_cast<int>(batch)),
            Image(batch, batch) + second);
    }
    Write("in/test_batch.bin", Image(0, 'x'));
  }

  void ExpectRefused(const std::string& sentence) {
    EXPECT_THAT([&] { ConvertCifar(options_); }, ThrowsMessage<Error>(HasSubstr(sentence)));
    EXPECT_FALSE(std::filesystem::exists(Path("out/cifar10_train_lmdb")));
  }

  CifarOptions options_;
};

// A record in protobuf's encoding: channels 3, height 32, width 32, 3072 bytes (the length is a
// two-byte varint), label.
std::string CifarRecord(char label, char shade) {
  return std::string("\x08\x03\x10\x20\x18\x20\x22\x80\x18") + std::string(kPixels, shade) +
         '\x28' + label;
}

TEST_F(ConvertCifarTest, StoresTheSameBytesAsCaffe) {
  for (const auto backend : {DataParameter::LMDB, DataParameter::LEVELDB}) {
    options_.backend = backend;
    ConvertCifar(options_);
    const std::string kind = backend == DataParameter::LMDB ? "lmdb" : "leveldb";
    std::vector<std::pair<char, char>> expected = {{1, 1}, {2, 2}, {9, '\xff'},
                                                   {3, 3}, {4, 4}, {5, 5}};
    auto cursor = OpenDatabase(backend, Path("out/cifar10_train_" + kind));
    for (size_t i = 0; i < expected.size(); ++i, cursor->Next()) {
      ASSERT_TRUE(cursor->valid());
      EXPECT_EQ(cursor->key(), fmt::format("0000{}", i));
      EXPECT_TRUE(cursor->value() == CifarRecord(expected[i].first, expected[i].second)) << i;
    }
    EXPECT_FALSE(cursor->valid());
    cursor = OpenDatabase(backend, Path("out/cifar10_test_" + kind));
    EXPECT_EQ(cursor->key(), "00000");
    EXPECT_TRUE(cursor->value() == CifarRecord(0, 'x'));
  }
}

TEST_F(ConvertCifarTest, DamagedFilesAreRejectedBeforeADatabaseIsCreated) {
  Write("in/test_batch.bin", Image(1, 'x') + "y");
  ExpectRefused("test_batch.bin has 3074 bytes, not a multiple");
  Write("in/test_batch.bin", "");
  ExpectRefused("test_batch.bin has 0 bytes");
  Write("in/test_batch.bin", Image(1, 'x') + Image(10, 'x'));
  ExpectRefused("test_batch.bin: record 1 has label 10");
  std::filesystem::remove(Path("in/data_batch_4.bin"));
  ExpectRefused("data_batch_4.bin");
}

TEST_F(ConvertCifarTest, AnExistingDatabaseIsAnErrorBeforeAnythingIsCreated) {
  std::filesystem::create_directories(Path("out/cifar10_test_lmdb"));
  ExpectRefused("cifar10_test_lmdb already exists");
}

}  // namespace
}  // namespace hearth::caffe
