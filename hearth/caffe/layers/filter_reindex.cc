// BatchReindex and Filter: copy some rows of the bottoms; the last bottom determines which ones.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// Selects rows of a bottom: row i of the top is a copy of the bottom's row rows()[i].
class RowChoice {
 public:
  explicit RowChoice(const ComputeDevice& device) : device_(device) {}

  // The layer fills this list before it calls count() or Copy().
  std::vector<int64_t>& rows() { return rows_; }
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }

  void Copy(Blob& from, Blob& to) const {
    if (device_.separate) {
      to.device_data().copy_(from.device_data().index_select(0, Index()));
      return;
    }
    const int64_t size = from.count(1);
    const float* x = from.data_ptr();
    float* y = to.data_ptr();
    for (const int64_t row : rows_) y = std::copy_n(x + row * size, size, y);
  }

  // The gradient of a row is the sum over its copies in the top, or 0 if it has none.
  void Spread(Blob& top, Blob& bottom) const {
    if (device_.separate) {
      bottom.device_diff().zero_().index_add_(0, Index(), top.device_diff());
      return;
    }
    const int64_t size = bottom.count(1);
    const float* dy = top.diff_ptr();
    float* dx = bottom.diff_ptr();
    // dx[r] is the sum of dy[i] over all i with rows()[i] = r.
    std::fill_n(dx, bottom.count(), 0.f);
    for (const int64_t row : rows_) {
      for (int64_t i = 0; i < size; ++i) dx[row * size + i] += *dy++;
    }
  }

 private:
  Tensor Index() const { return device::longs(rows_, device_.device); }

  const ComputeDevice device_;
  std::vector<int64_t> rows_;
};

// Copies the rows of bottom 0 whose numbers are listed in bottom 1, in any order and with
// repetitions.
class BatchReindexLayer : public Layer {
 public:
  BatchReindexLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context), choice_(context.device) {}

  LayerTraits traits() const override { return {.arity = {2, 2, 1, 1}, .never_forced = {1}}; }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Require(bottom[1]->num_axes() == 1, ErrorCode::kInvalidArgument,
            "the second bottom must list row numbers along one axis, but has shape {}",
            bottom[1]->ShapeString());
    Shape shape = bottom[0]->shape();
    Require(!shape.empty(), ErrorCode::kInvalidArgument,
            "the first bottom has no axes, so it has no rows");
    shape[0] = bottom[1]->shape(0);
    top[0]->Reshape(shape);
    choice_.rows().resize(shape[0]);
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    // The row numbers are read on the host; the rows are copied on the net's device.
    const float* indices = bottom[1]->read_data();
    std::vector<int64_t>& rows = choice_.rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      Require(indices[i] >= 0 && indices[i] < static_cast<float>(bottom[0]->shape(0)),
              ErrorCode::kInvalidArgument,
              "index {} at position {} is not a row of a bottom of shape {}", indices[i], i,
              bottom[0]->ShapeString());
      rows[i] = static_cast<int64_t>(indices[i]);
    }
    choice_.Copy(*bottom[0], *top[0]);
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down[1], ErrorCode::kInvalidArgument,
            "BatchReindex has no gradient for its row numbers");
    if (propagate_down[0]) choice_.Spread(*top[0], *bottom[0]);
  }

 private:
  RowChoice choice_;
};

// Copies selected rows of all bottoms but the last. The last bottom has one value per row, and a
// row is selected if this value is not 0.
class FilterLayer : public Layer {
 public:
  FilterLayer(const LayerParameter& param, const NetContext& context)
      : Layer(param, context), choice_(context.device) {}

  LayerTraits traits() const override {
    return {.arity = {2, Arity::kNoLimit, 1, Arity::kNoLimit}, .never_forced = {param_.top_size()}};
  }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    Require(bottom.size() == top.size() + 1, ErrorCode::kInvalidArgument,
            "Filter takes one bottom for each of its {} tops and then the one that selects rows, "
            "not {} bottoms",
            top.size(), bottom.size());
  }

  // Reserves space in the tops for all rows. Forward reads the selection and shrinks the tops.
  void Reshape(const Blobs& bottom, const Blobs& top) override {
    const Blob& selector = *bottom.back();
    Require(selector.num_axes() > 0 && selector.count(1) == 1, ErrorCode::kInvalidArgument,
            "the last bottom, which selects rows, must have one value per row, but has shape {}",
            selector.ShapeString());
    for (size_t i = 0; i < top.size(); ++i) {
      Require(bottom[i]->shape(0) == selector.shape(0), ErrorCode::kInvalidArgument,
              "the last bottom selects among {} rows, but bottom {} has shape {}",
              selector.shape(0), i, bottom[i]->ShapeString());
      top[i]->ReshapeLike(*bottom[i]);
    }
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    const float* chosen = bottom.back()->read_data();
    // The row numbers are kept for Backward, which adds the tops' gradients to the same rows.
    choice_.rows().clear();
    for (int64_t i = 0; i < bottom.back()->count(); ++i) {
      if (chosen[i] != 0) choice_.rows().push_back(i);
    }
    for (size_t i = 0; i < top.size(); ++i) {
      Shape shape = bottom[i]->shape();
      shape[0] = choice_.count();
      top[i]->Reshape(shape);
      choice_.Copy(*bottom[i], *top[i]);
    }
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    Require(!propagate_down.back(), ErrorCode::kInvalidArgument,
            "Filter has no gradient for the bottom that selects rows");
    for (size_t i = 0; i < top.size(); ++i) {
      if (propagate_down[i]) choice_.Spread(*top[i], *bottom[i]);
    }
  }

 private:
  RowChoice choice_;  // of the last Forward
};

}  // namespace

void RegisterFilterReindex(LayerRegistry& registry) {
  registry.Add<BatchReindexLayer>("BatchReindex");
  registry.Add<FilterLayer>("Filter");
}

}  // namespace hearth::caffe
