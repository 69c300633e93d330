#include "hearth/caffe/solver/weight_update.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/timeline.h"
#include "hearth/caffe/solver/gradient_norm.h"
#include "hearth/caffe/tensor/blob_proto.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/proto_shape.h"

namespace hearth::caffe {

WeightUpdate::WeightUpdate(const SolverParameter& param, const SolverOptions& options, Net& net)
    : param_(param),
      net_(net),
      is_root_(options.is_root),
      on_device_(options.train_context.device.separate),
      rule_(param),
      end_(net.params().layout().size) {
  for (int i = 0; i < rule_.history_count(); ++i) {
    history_.emplace_back(Shape{end_}).set_device(options.train_context.device);
    // Allocated here, because threads that share the history must not allocate it on first use.
    history_.back().device_data();
  }
}

void WeightUpdate::Apply(int iteration, float rate, double weight) {
  const timeline::Span span("solver", "update");
  const NetParams& params = net_.params();
  const float scale = GradientScale(weight);
  // One call updates all parameters with the same rate and decay, because launching a GPU kernel
  // for a small layer takes longer than running it.
  std::map<std::pair<float, float>, TensorUpdate> on_device;
  for (size_t i = 0; i < params.learnable().size(); ++i) {
    const LearnableParam& param = params.learnable()[i];
    const float lr = rate * param.lr_mult;
    const float decay = param_.weight_decay() * param.decay_mult;
    if (on_device_) {
      AddToUpdate(i, &on_device[{lr, decay}]);
    } else {
      UpdateOnHost(i, {nullptr, nullptr, {}, 0, scale, lr, decay}, iteration);
    }
  }
  for (auto& [rates, update] : on_device) {
    std::tie(update.rate, update.decay) = rates;
    update.gradient_scale = scale;
    rule_.Apply(update, iteration);
  }
  // Threads that share the weights must not run forward before all ranges are updated.
  if (wait_) wait_();
}

// The diffs contain the sum, over all ranks and passes, of gradients that are means over full
// minibatches. Caffe clips the sum over the passes of the mean over the ranks.
float WeightUpdate::GradientScale(double weight) {
  const double iter_size = param_.iter_size();
  double scale = iter_size / weight;
  const float limit = param_.clip_gradients();
  if (limit >= 0) {
    const double norm = scale * GradientNorm();
    if (norm > limit) {
      if (is_root_) {
        log::Info(
            "Gradient clipping: scaling down gradients (L2 norm {:g} > {:g}) by scale factor {:g}",
            norm, limit, limit / norm);
      }
      scale *= limit / norm;
    }
  }
  return static_cast<float>(scale / iter_size);
}

double WeightUpdate::GradientNorm() {
  NetParams& params = net_.params();
  if (on_device_) return device::norm(params.device_diff());
  const Tensor& diff = params.diff();
  return std::sqrt(SumOfSquares(diff.data_ptr(), diff.numel()));
}

// Uses the blob, not params.data(), because the weights may be another net's
// (ShareTrainedLayersWith).
void WeightUpdate::AddToUpdate(size_t index, TensorUpdate* update) {
  const ParamLayout::Slice slice = net_.params().layout().slices[index];
  Blob& blob = *net_.params().learnable()[index].blob;
  update->data.push_back(blob.device_data().view({-1}));
  update->diff.push_back(blob.device_diff().view({-1}));
  for (size_t j = 0; j < history_.size(); ++j) {
    update->history[j].push_back(history_[j].device_data().narrow(0, slice.offset, slice.count));
  }
}

void WeightUpdate::UpdateOnHost(size_t index, const ParamUpdate& rates, int iteration) {
  const ParamLayout::Slice slice = net_.params().layout().slices[index];
  // Each of the solvers that share weights updates a range of the flat buffer, which may begin or
  // end inside a parameter.
  const int64_t begin = std::max(slice.offset, begin_);
  const int64_t end = std::min(slice.offset + slice.count, end_);
  if (begin >= end) return;
  Blob& blob = *net_.params().learnable()[index].blob;
  ParamUpdate update = rates;
  update.data = blob.data_ptr() + begin - slice.offset;
  update.diff = blob.diff_ptr() + begin - slice.offset;
  update.count = end - begin;
  for (size_t j = 0; j < history_.size(); ++j) update.history[j] = history_[j].data_ptr() + begin;
  rule_.Apply(update, iteration);
}

void WeightUpdate::Share(WeightUpdate& owner, int part, int parts, std::function<void()> wait) {
  const int64_t size = net_.params().layout().size;
  begin_ = size * part / parts;
  end_ = size * (part + 1) / parts;
  wait_ = std::move(wait);
  if (&owner == this) return;
  for (size_t j = 0; j < history_.size(); ++j) history_[j].ShareData(owner.history_[j]);
}

std::vector<Tensor> WeightUpdate::history() {
  std::vector<Tensor> groups;
  groups.reserve(history_.size());
  for (Blob& group : history_) groups.push_back(group.data());
  return groups;
}

void WeightUpdate::WriteHistory(SolverState* state) {
  const NetParams& params = net_.params();
  // As in Caffe, all parameters of the first history come first, then all of the second.
  for (const Tensor& group : history()) {
    for (size_t i = 0; i < params.learnable().size(); ++i) {
      const ParamLayout::Slice slice = params.layout().slices[i];
      const float* values = group.data_ptr() + slice.offset;
      BlobProto* blob = state->add_history();
      *blob->mutable_shape()->mutable_dim() = params.learnable()[i].blob->shape();
      blob->mutable_data()->assign(values, values + slice.count);
    }
  }
}

void WeightUpdate::ReadHistory(const SolverState& state, const std::string& uri) {
  const NetParams& params = net_.params();
  const size_t count = params.learnable().size();
  Require(state.history().size() == count * history_.size(), ErrorCode::kInvalidArgument,
          "{} holds {} history blobs, but solver type {} needs {} for this net; the file may be of "
          "another net or solver type",
          uri, state.history().size(), param_.type(), count * history_.size());
  for (size_t i = 0; i < state.history().size(); ++i) {
    const BlobProto& blob = state.history()[i];
    const ParamLayout::Slice slice = params.layout().slices[i % count];
    const Blob& param = *params.learnable()[i % count].blob;
    Require(HasShapeOf(param, blob), ErrorCode::kInvalidArgument,
            "{}: history blob {} has shape {}, but the parameter has {}", uri, i, ShapeString(blob),
            param.ShapeString());
    Blob history(param.shape());
    history.BindData(history_[i / count].data().narrow(0, slice.offset, slice.count));
    ReadBlobData(blob, &history);
  }
}

}  // namespace hearth::caffe
