// HDF5Data: one top per dataset, read from the files in a list.
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "hearth/base/error.h"
#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/data/image_list.h"
#include "hearth/caffe/layers/file_data.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {
namespace {

// Reads HDF5 files and keeps one of them in memory at a time. Each top is read from the dataset
// with the top's name.
class Hdf5DataLayer : public FileDataLayer {
 public:
  Hdf5DataLayer(const LayerParameter& param, const NetContext& context)
      : FileDataLayer(param, context), random_(seed()) {}
  ~Hdf5DataLayer() override { StopLoading(); }

  LayerTraits traits() const override { return {.arity = {0, 0, 1, Arity::kNoLimit}}; }

  void SetUp(const Blobs&, const Blobs& top) override {
    const HDF5DataParameter& data = param_.hdf5_data_param();
    Require(!param_.has_transform_param(), ErrorCode::kInvalidArgument,
            "an HDF5Data layer cannot transform; remove transform_param");
    Require(!data.source().empty(), ErrorCode::kInvalidArgument,
            "hdf5_data_param has no source; set it to the list of files");
    set_batch_size(data.batch_size());
    files_ = ReadLines(data.source());
    Require(!files_.empty(), ErrorCode::kInvalidArgument, "the list {} has no files",
            data.source());
    Shuffle(&files_);
    datasets_.resize(top.size());
    // The tops get the first file's row shape and batch_size rows.
    LoadFile();
    for (size_t i = 0; i < top.size(); ++i) top[i]->Reshape(TopShape(i));
  }

 protected:
  // Skips item by item through all files, because every shuffle on the way draws random numbers,
  // which determine the order of later files and rows.
  void Skip(int64_t items) override {
    for (; items > 0; --items) {
      FindMine();
      Advance();
    }
  }

  void LoadBatch(DataBatch* batch) override {
    batch->tops.resize(datasets_.size());
    for (size_t i = 0; i < datasets_.size(); ++i) batch->tops[i].Reshape(TopShape(i));
    for (int64_t row = 0; row < batch_size(); ++row) {
      FindMine();
      for (size_t i = 0; i < datasets_.size(); ++i) {
        const int64_t size = datasets_[i].row_size;
        std::copy_n(&datasets_[i].values[rows_[row_] * size], size,
                    &batch->tops[i].values[row * size]);
      }
      Advance();
    }
  }

 private:
  struct Dataset {
    Shape row_shape;
    int64_t row_size = 0;
    std::vector<float> values;
  };

  Shape TopShape(size_t i) const {
    Shape shape = datasets_[i].row_shape;
    shape.insert(shape.begin(), batch_size());
    return shape;
  }

  template <typename T>
  void Shuffle(std::vector<T>* order) {
    if (!param_.hdf5_data_param().shuffle()) return;
    std::shuffle(order->begin(), order->end(), random_.engine());
  }

  void LoadFile() {
    const std::string& name = files_[file_];
    const Hdf5File file = Hdf5File::Open(name);
    // All datasets of a file must have the same number of rows, because item i consists of row i of
    // each.
    int64_t rows = -1;
    for (size_t i = 0; i < datasets_.size(); ++i) {
      const int64_t own = LoadDataset(file, i);
      Require(rows < 0 || own == rows, ErrorCode::kDataLoss,
              "{}: dataset {} has {} rows, but {} has {}", name, param_.top()[i], own,
              param_.top()[0], rows);
      rows = own;
    }
    rows_.resize(rows);
    std::iota(rows_.begin(), rows_.end(), 0);
    Shuffle(&rows_);
    row_ = 0;
  }

  // Loads a dataset and returns its number of rows.
  int64_t LoadDataset(const Hdf5File& file, size_t i) {
    const std::string& top = param_.top()[i];
    const Shape shape = file.ShapeOf("/" + top);
    Require(!shape.empty() && shape[0] > 0, ErrorCode::kDataLoss, "{}: dataset {} has no rows",
            files_[file_], top);
    Dataset& dataset = datasets_[i];
    const Shape row_shape(shape.begin() + 1, shape.end());
    Require(dataset.row_size == 0 || row_shape == dataset.row_shape, ErrorCode::kDataLoss,
            "{}: the rows of dataset {} have the shape ({}), but ({}) in another file",
            files_[file_], top, fmt::join(row_shape, ", "), fmt::join(dataset.row_shape, ", "));
    dataset.values = file.ReadFloats("/" + top);
    dataset.row_shape = row_shape;
    dataset.row_size = static_cast<int64_t>(dataset.values.size()) / shape[0];
    return shape[0];
  }

  void FindMine() {
    while (!IsMine(number_)) Advance();
  }

  void Advance() {
    ++number_;
    if (++row_ < rows_.size()) return;
    row_ = 0;
    // A single file stays in memory; only its rows are shuffled again.
    if (files_.size() == 1) {
      Shuffle(&rows_);
      return;
    }
    if (++file_ == files_.size()) {
      file_ = 0;
      Shuffle(&files_);
    }
    LoadFile();
  }

  Random random_;  // draws in the order of the items, so all ranks draw the same numbers
  std::vector<std::string> files_;
  size_t file_ = 0;  // index of the loaded file
  std::vector<Dataset> datasets_;
  std::vector<int64_t> rows_;  // rows of the loaded file, in the order of use
  size_t row_ = 0;
  uint64_t number_ = 0;  // of the item at row_
};

}  // namespace

void RegisterHdf5Data(LayerRegistry& registry) { registry.Add<Hdf5DataLayer>("HDF5Data"); }

}  // namespace hearth::caffe
