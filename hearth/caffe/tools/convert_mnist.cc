#include "hearth/caffe/tools/convert_mnist.h"

#include <initializer_list>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/tensor/random.h"
#include "hearth/caffe/tools/progress_log.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kCommit = 1000;  // number of records that are committed together
// Fixed, so the same files always result in the same pairs.
constexpr uint64_t kPairSeed = 1;

uint32_t BigEndian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// An idx file of bytes: a four-byte magic number, the sizes of its axes, and the data.
class IdxFile {
 public:
  IdxFile(const std::string& path, size_t axes) : bytes_(storage::ReadFile(path)) {
    header_ = 4 + 4 * axes;
    Require(!bytes_.starts_with("\x1f\x8b"), ErrorCode::kInvalidArgument,
            "{} is gzipped: gunzip it first", path);
    // The magic number: two zero bytes, the type (8 for unsigned bytes), and the number of axes.
    // All numbers are big-endian.
    const uint32_t magic = 0x800 + static_cast<uint32_t>(axes);
    Require(bytes_.size() >= header_ && BigEndian(bytes_, 0) == magic, ErrorCode::kDataLoss,
            "{} is not an idx file of bytes with {} axes: it does not begin with the number {}",
            path, axes, magic);
    uint64_t count = 1;
    for (size_t axis = 0; axis < axes; ++axis) {
      sizes_.push_back(BigEndian(bytes_, 4 + 4 * axis));
      const uint64_t size = sizes_.back();
      // Checked before multiplying, because sizes in a damaged file may overflow the product.
      Require(size > 0 && count <= std::numeric_limits<int64_t>::max() / size, ErrorCode::kDataLoss,
              "{}: axis {} has the invalid size {}", path, axis, size);
      count *= size;
    }
    Require(bytes_.size() - header_ == count, ErrorCode::kDataLoss,
            "{} has {} bytes of data, but its header says {}: it is truncated or damaged", path,
            bytes_.size() - header_, count);
  }

  int64_t size(size_t axis) const { return sizes_[axis]; }
  // The bytes of one item along the first axis.
  std::string_view Item(int64_t item) const {
    const size_t size = (bytes_.size() - header_) / sizes_[0];
    return std::string_view(bytes_).substr(header_ + item * size, size);
  }

 private:
  std::string bytes_;
  size_t header_;
  std::vector<uint32_t> sizes_;
};

// An image file and its label file, which has one label per image.
class Mnist {
 public:
  explicit Mnist(const MnistOptions& options)
      : images_(options.images, 3), labels_(options.labels, 1) {
    Require(images_.size(0) == labels_.size(0), ErrorCode::kInvalidArgument,
            "{} has {} images, but {} has {} labels: these files do not match", options.images,
            images_.size(0), options.labels, labels_.size(0));
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    Require(images_.size(1) <= kMost && images_.size(2) <= kMost, ErrorCode::kDataLoss,
            "{}: images of {} x {} are not supported", options.images, images_.size(1),
            images_.size(2));
    log::Info("A total of {} items.", count());
    log::Info("Rows: {} Cols: {}", images_.size(1), images_.size(2));
  }

  int64_t count() const { return images_.size(0); }
  std::string_view image(int64_t item) const { return images_.Item(item); }
  int32_t label(int64_t item) const { return static_cast<uint8_t>(labels_.Item(item)[0]); }

  Datum DatumOf(std::initializer_list<int64_t> items, int32_t label) const {
    Datum datum;
    SetShape(static_cast<int64_t>(items.size()), images_.size(1), images_.size(2), &datum);
    // Each of the images becomes a channel of the Datum.
    for (const int64_t item : items) datum.mutable_data()->append(image(item));
    datum.set_label(label);
    return datum;
  }

 private:
  IdxFile images_, labels_;
};

template <typename MakeDatum>
int64_t StoreMnist(const MnistOptions& options, int64_t count, const MakeDatum& make_datum) {
  const auto database = CreateDatabase(options.backend, options.database);
  ProgressLog progress;
  for (int64_t item = 0; item < count; ++item) {
    database->Put(fmt::format("{:08}", item), WireBytes(make_datum(item)));
    // Commits from time to time, because uncommitted records are in memory.
    if ((item + 1) % kCommit != 0) continue;
    database->Commit();
    progress.Done(item + 1);
  }
  database->Commit();
  progress.Finish(count);
  return count;
}

}  // namespace

int64_t ConvertMnist(const MnistOptions& options) {
  const Mnist mnist(options);
  return StoreMnist(options, mnist.count(),
                    [&](int64_t item) { return mnist.DatumOf({item}, mnist.label(item)); });
}

int64_t ConvertMnistSiamese(const MnistOptions& options) {
  const Mnist mnist(options);
  Random random(kPairSeed);
  // Like Caffe's convert_mnist_siamese_data, stores as many pairs as there are images. Both images
  // of a pair are chosen at random.
  return StoreMnist(options, mnist.count(), [&](int64_t) {
    const auto first = static_cast<int64_t>(random.Below(mnist.count()));
    const auto second = static_cast<int64_t>(random.Below(mnist.count()));
    return mnist.DatumOf({first, second}, mnist.label(first) == mnist.label(second) ? 1 : 0);
  });
}

}  // namespace hearth::caffe
