#include "hearth/caffe/tools/convert_cifar.h"

#include <memory>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

constexpr int kBatches = 5, kSide = 32, kClasses = 10;
constexpr size_t kRecords = 10'000;  // per CIFAR-10 file
constexpr size_t kPixels = 3 * kSide * kSide;
constexpr size_t kRecord = 1 + kPixels;  // the label, then the red, green and blue values

// Reads the records of a file. Checks the file's length and the labels.
std::string ReadBatch(const std::string& path) {
  std::string bytes = storage::ReadFile(path);
  Require(!bytes.empty() && bytes.size() % kRecord == 0, ErrorCode::kDataLoss,
          "{} has {} bytes, not a multiple of CIFAR-10's record size of {} bytes: it is "
          "truncated, or not a CIFAR-10 file",
          path, bytes.size(), kRecord);
  if (bytes.size() != kRecords * kRecord) {
    log::Warning("{} has {} images instead of CIFAR-10's {}: it may be truncated", path,
                 bytes.size() / kRecord, kRecords);
  }
  for (size_t at = 0; at < bytes.size(); at += kRecord) {
    const auto label = static_cast<uint8_t>(bytes[at]);
    Require(label < kClasses, ErrorCode::kDataLoss,
            "{}: record {} has label {}; CIFAR-10's are from 0 to 9", path, at / kRecord, label);
  }
  return bytes;
}

void StoreCifar(const std::vector<std::string>& batches, DataParameter::DB backend,
                const std::string& name) {
  const auto database = CreateDatabase(backend, name);
  Datum datum;
  SetShape(3, kSide, kSide, &datum);
  int64_t number = 0;
  for (const std::string& bytes : batches) {
    for (size_t at = 0; at < bytes.size(); at += kRecord) {
      datum.set_label(static_cast<uint8_t>(bytes[at]));
      datum.set_data(bytes.substr(at + 1, kPixels));
      // Like Caffe's tool, uses keys of five digits, so the 50,000 images stay in order.
      database->Put(fmt::format("{:05}", number++), WireBytes(datum));
    }
    database->Commit();
  }
  log::Info("{} has {} images", name, number);
}

}  // namespace

// Reads all files (184 MB) before it writes, so that a damaged test file does not leave a training
// database without a test database.
void ConvertCifar(const CifarOptions& options) {
  std::vector<std::string> training;
  for (int batch = 1; batch <= kBatches; ++batch) {
    training.push_back(ReadBatch(fmt::format("{}/data_batch_{}.bin", options.input, batch)));
    log::Info("Training Batch {}", batch);
  }
  const std::string test = ReadBatch(options.input + "/test_batch.bin");
  const std::string_view kind = options.backend == DataParameter::LMDB ? "lmdb" : "leveldb";
  const auto name = [&](std::string_view part) {
    return fmt::format("{}/cifar10_{}_{}", options.output, part, kind);
  };
  // Checks that neither database exists before it creates the first one.
  for (const std::string_view part : {"train", "test"}) {
    Require(!storage::Exists(name(part)), ErrorCode::kInvalidArgument,
            "{} already exists; remove it, or choose another folder", name(part));
  }
  log::Info("Writing Training data");
  StoreCifar(training, options.backend, name("train"));
  log::Info("Writing Testing data");
  StoreCifar({test}, options.backend, name("test"));
}

}  // namespace hearth::caffe
