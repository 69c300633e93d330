// BatchReindex and Filter: rows of the bottoms, chosen by a bottom.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {
namespace {

// rows[i]: which row of `from` goes to row i of `to`.
void CopyRows(const std::vector<int64_t>& rows, const float* from, int64_t size, float* to) {
  for (const int64_t row : rows) to = std::copy_n(from + row * size, size, to);
}

// The gradient of CopyRows: rows that were copied several times get the sum, others 0.
void SpreadRows(const std::vector<int64_t>& rows, const float* top_diff, Blob* bottom) {
  const int64_t size = bottom->count(1);
  float* dx = bottom->diff_ptr();
  std::fill_n(dx, bottom->count(), 0.f);
  for (const int64_t row : rows) {
    for (int64_t i = 0; i < size; ++i) dx[row * size + i] += *top_diff++;
  }
}

// Bottom 1 lists rows of bottom 0, in any order and number.
class BatchReindexLayer : public Layer {
 public:
  using Layer::Layer;

  Arity arity() const override { return {2, 2, 1, 1}; }
  bool AllowsForceBackward(int bottom) const override { return bottom == 0; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Require(bottom[1]->num_axes() == 1, ErrorCode::kInvalidArgument,
            "its second bottom lists row numbers along one axis, but has shape {}",
            bottom[1]->ShapeString());
    Shape shape = bottom[0]->shape();
    Require(!shape.empty(), ErrorCode::kInvalidArgument, "its first bottom has no rows");
    shape[0] = bottom[1]->shape(0);
    top[0]->Reshape(shape);
    rows_.resize(shape[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    const float* indices = bottom[1]->data_ptr();
    for (size_t i = 0; i < rows_.size(); ++i) {
      Require(indices[i] >= 0 && indices[i] < static_cast<float>(bottom[0]->shape(0)),
              ErrorCode::kInvalidArgument,
              "index {} at position {} is no row of a bottom of shape {}", indices[i], i,
              bottom[0]->ShapeString());
      rows_[i] = static_cast<int64_t>(indices[i]);
    }
    CopyRows(rows_, bottom[0]->data_ptr(), bottom[0]->count(1), top[0]->data_ptr());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[1], ErrorCode::kInvalidArgument,
            "BatchReindex has no gradient for its row numbers");
    if (propagate_down[0]) SpreadRows(rows_, top[0]->diff_ptr(), bottom[0]);
  }

 private:
  std::vector<int64_t> rows_;
};

// The last bottom says for each row of the others, by a value other than 0, whether it is kept.
class FilterLayer : public Layer {
 public:
  using Layer::Layer;

  Arity arity() const override { return {2, kNoLimit, 1, kNoLimit}; }
  bool AllowsForceBackward(int bottom) const override { return bottom < param_.top_size(); }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    Require(bottom.size() == top.size() + 1, ErrorCode::kInvalidArgument,
            "Filter takes one bottom for each of its {} tops and then the one that chooses rows, "
            "not {} bottoms",
            top.size(), bottom.size());
  }

  // The tops could hold all rows; Forward, which sees the choice, makes them smaller.
  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const Blob& selector = *bottom.back();
    Require(selector.num_axes() > 0 && selector.count(1) == 1, ErrorCode::kInvalidArgument,
            "its last bottom chooses rows by one value for each, but has shape {}",
            selector.ShapeString());
    for (size_t i = 0; i < top.size(); ++i) {
      Require(bottom[i]->shape(0) == selector.shape(0), ErrorCode::kInvalidArgument,
              "its last bottom chooses among {} rows, but bottom {} has shape {}",
              selector.shape(0), i, bottom[i]->ShapeString());
      top[i]->ReshapeLike(*bottom[i]);
    }
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    const float* chosen = bottom.back()->data_ptr();
    rows_.clear();
    for (int64_t i = 0; i < bottom.back()->count(); ++i) {
      if (chosen[i] != 0) rows_.push_back(i);
    }
    for (size_t i = 0; i < top.size(); ++i) {
      Shape shape = bottom[i]->shape();
      shape[0] = static_cast<int64_t>(rows_.size());
      top[i]->Reshape(shape);
      CopyRows(rows_, bottom[i]->data_ptr(), bottom[i]->count(1), top[i]->data_ptr());
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down.back(), ErrorCode::kInvalidArgument,
            "Filter has no gradient for the bottom that chooses rows");
    for (size_t i = 0; i < top.size(); ++i) {
      if (propagate_down[i]) SpreadRows(rows_, top[i]->diff_ptr(), bottom[i]);
    }
  }

 private:
  std::vector<int64_t> rows_;  // kept by the last Forward
};

}  // namespace

void RegisterRowChoice(LayerRegistry& registry) {
  registry.Add<BatchReindexLayer>("BatchReindex");
  registry.Add<FilterLayer>("Filter");
}

}  // namespace hearth::caffe
