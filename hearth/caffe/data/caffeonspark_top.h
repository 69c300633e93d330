// One top of a CoSData layer: reads its column and converts the values to floats.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "hearth/caffe/data/image_reader.h"
#include "hearth/caffe/tensor/blob.h"
#include "hearth/dataset/spool/minibatch.h"

namespace hearth::caffe {

// One top of a CoSData layer. Immutable after construction and thread-safe.
class CaffeOnSparkTop {
 public:
  // Throws kInvalidArgument, naming the top, for fields that contradict each other.
  CaffeOnSparkTop(const CoSDataParameter::TopBlob& param, Phase phase, bool resize);

  // Shape of one row: (out_channels, out_height, out_width), truncated to sample_num_axes.
  const Shape& row_shape() const { return row_shape_; }
  bool transposed() const { return param_.transpose(); }

  // Like RowBatches::ReadRow, but for this top only. Pads an array that is shorter than the top
  // with zeros, and logs this for the first such array.
  void Read(const dataset::Minibatch::Row& row, uint64_t seed, float* out) const;

 private:
  void MakeImageReader(Phase phase, bool resize);
  void CheckValues() const;
  void ReadArray(const batch::ColumnView& column, int64_t row, float* out) const;
  void ReadImageWithDim(const batch::ColumnView& column, int64_t row, uint64_t seed,
                        float* out) const;

  CoSDataParameter::TopBlob param_;
  Shape row_shape_;
  int64_t count_ = 1;  // values per row
  std::unique_ptr<ImageReader> images_;
  std::unique_ptr<std::once_flag> padding_logged_ = std::make_unique<std::once_flag>();
};

}  // namespace hearth::caffe
