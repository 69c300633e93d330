#include "hearth/caffe/data/caffeonspark_top.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/data/row_values.h"
#include "hearth/caffe/tensor/shape_count.h"

namespace hearth::caffe {
namespace {

using Param = CoSDataParameter;

bool IsImage(Param::DataType type) {
  return type == Param::ENCODED_IMAGE || type == Param::RAW_IMAGE ||
         type == Param::ENCODED_IMAGE_WITH_DIM;
}

bool IsArray(Param::DataType type) {
  return type == Param::INT_ARRAY || type == Param::FLOAT_ARRAY;
}

}  // namespace

CaffeOnSparkTop::CaffeOnSparkTop(const Param::TopBlob& param, Phase phase, bool resize)
    : param_(param) {
  // An unset output size (0) defaults to the input size.
  const auto or_input = [](int64_t out, int64_t in) { return out == 0 ? in : out; };
  Shape dims = {or_input(param.out_channels(), param.channels()),
                or_input(param.out_height(), param.height()),
                or_input(param.out_width(), param.width())};
  Require(param.sample_num_axes() <= 3, ErrorCode::kInvalidArgument,
          "top '{}': sample_num_axes must be from 0 to 3, not {}", param.name(),
          param.sample_num_axes());
  if (IsImage(param.type())) {
    MakeImageReader(phase, resize);
    // The image reader's output size includes the crop of transform_param.
    dims = {images_->output().channels, images_->output().height, images_->output().width};
  }
  row_shape_.assign(dims.begin(), dims.begin() + param.sample_num_axes());
  // If the size is missing or too large, count_ becomes 0, which CheckValues rejects.
  count_ = CountOf(row_shape_).value_or(0);
  CheckValues();
}

void CaffeOnSparkTop::MakeImageReader(Phase phase, bool resize) {
  const ImageSize input = {param_.channels(), param_.height(), param_.width()};
  images_ = std::make_unique<ImageReader>(param_.transform_param(), phase, input, resize);
  const ImageSize& output = images_->output();
  const auto fits = [](int64_t wanted, int64_t got) { return wanted == 0 || wanted == got; };
  Require(
      fits(param_.out_channels(), output.channels) && fits(param_.out_height(), output.height) &&
          fits(param_.out_width(), output.width),
      ErrorCode::kInvalidArgument,
      "top '{}': out_channels x out_height x out_width is {} x {} x {}, but its transform_param "
      "gives {} x {} x {}",
      param_.name(), param_.out_channels(), param_.out_height(), param_.out_width(),
      output.channels, output.height, output.width);
}

void CaffeOnSparkTop::CheckValues() const {
  Require(count_ > 0, ErrorCode::kInvalidArgument,
          "top '{}': with sample_num_axes {}, its channels, height and width must be above 0",
          param_.name(), param_.sample_num_axes());
  Require(!IsImage(param_.type()) || count_ == images_->output().count(),
          ErrorCode::kInvalidArgument, "top '{}': an image needs sample_num_axes 3, not {}",
          param_.name(), param_.sample_num_axes());
  Require(IsImage(param_.type()) || IsArray(param_.type()) || count_ == 1,
          ErrorCode::kInvalidArgument,
          "top '{}': a single value per row cannot fill the {} values of the top; set "
          "sample_num_axes to 0",
          param_.name(), count_);
  Require(!param_.transpose() || param_.sample_num_axes() == 1, ErrorCode::kInvalidArgument,
          "top '{}': transpose needs sample_num_axes 1, not {}", param_.name(),
          param_.sample_num_axes());
}

void CaffeOnSparkTop::Read(const dataset::Minibatch::Row& row, uint64_t seed, float* out) const {
  const batch::ColumnView& column = ColumnWithValue(row, param_.name());
  switch (param_.type()) {
    case Param::STRING:
    case Param::INT:
    case Param::FLOAT:
      *out = NumberAt(column, row.index);
      break;
    case Param::INT_ARRAY:
    case Param::FLOAT_ARRAY:
      ReadArray(column, row.index, out);
      break;
    case Param::ENCODED_IMAGE:
      images_->ReadEncoded(column.Bytes(row.index), seed, out);
      break;
    case Param::RAW_IMAGE:
      images_->ReadRaw(column.Bytes(row.index),
                       {param_.channels(), param_.height(), param_.width()}, seed, out);
      break;
    case Param::ENCODED_IMAGE_WITH_DIM:
      ReadImageWithDim(column, row.index, seed, out);
      break;
  }
}

void CaffeOnSparkTop::ReadArray(const batch::ColumnView& column, int64_t row, float* out) const {
  std::vector<float> scratch;
  const std::span<const float> values = column.FloatList(row, &scratch);
  const auto count = static_cast<int64_t>(values.size());
  Require(count <= count_, ErrorCode::kDataLoss,
          "column '{}' has {} values, more than the {} of its top", column.name(), count, count_);
  // `out` still contains the values of an earlier batch. After a shorter array, CaffeOnSpark leaves
  // them in place; here they are overwritten with zeros.
  std::fill(std::copy(values.begin(), values.end(), out), out + count_, 0.0f);
  if (count == count_) return;
  // Only the first short row is logged. Several threads read rows, so this needs a once_flag.
  std::call_once(*padding_logged_, [&] {
    log::Warning(
        "Column '{}' has {} values, fewer than the {} of its top: shorter rows are padded with "
        "zeros",
        column.name(), count, count_);
  });
}

// The column is a struct of height, width and image. Only the image is read, since the encoded
// image contains its size.
void CaffeOnSparkTop::ReadImageWithDim(const batch::ColumnView& column, int64_t row, uint64_t seed,
                                       float* out) const {
  const batch::ColumnView* image = column.FindChild("image");
  Require(image != nullptr, ErrorCode::kNotFound,
          "column '{}' must be a struct with a field 'image'", column.name());
  Require(!image->IsNull(row), ErrorCode::kDataLoss, "field 'image' of column '{}' is null",
          column.name());
  images_->ReadEncoded(image->Bytes(row), seed, out);
}

}  // namespace hearth::caffe
