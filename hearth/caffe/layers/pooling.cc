// Pooling: the largest value, the average or a random one of each window.
#include <algorithm>
#include <cfloat>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/channels_last_pooling.h"
#include "hearth/caffe/kernels/device_pooling.h"
#include "hearth/caffe/kernels/pooling_windows.h"
#include "hearth/caffe/kernels/vector_math.h"
#include "hearth/caffe/layers/all_layers.h"
#include "hearth/caffe/net/parallel.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kPlaneGrain = 1;

class PoolingLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    const bool max = pool() == PoolingParameter::MAX, one_top = param_.top_size() == 1;
    const bool any = pool() != PoolingParameter::STOCHASTIC && param_.top_size() <= 1;
    return {.arity = {1, 1, 1, max ? 2 : 1},
            .channels_last = any ? ChannelsLast::kAny : ChannelsLast::kNo,
            .can_gate_bottom = max && one_top};
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    Require(bottom[0]->num_axes() == 4, ErrorCode::kInvalidArgument,
            "pooling takes a bottom of 4 axes, not one of shape {}", bottom[0]->ShapeString());
    rows_ = PoolingAxis::Read(param_.pooling_param(), 'h', bottom[0]->shape(2));
    columns_ = PoolingAxis::Read(param_.pooling_param(), 'w', bottom[0]->shape(3));
    for (Blob* blob : top) {
      blob->Reshape({bottom[0]->shape(0), bottom[0]->shape(1), rows_.outputs, columns_.outputs});
    }
    planes_ = bottom[0]->count(0, 2);
    channels_last_ = {rows_, columns_, bottom[0]->shape(1)};
    if (top[0]->layout() != bottom[0]->layout()) {
      aside_.ReshapeLike(*top[0]);
      if (aside_.layout() != bottom[0]->layout()) aside_.set_layout(bottom[0]->layout());
    }
    if (on_device()) device_ = DevicePooling::Of(pool(), rows_, columns_);
    if (!device_ && pool() != PoolingParameter::AVE) chosen_.resize(top[0]->count());
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    if (device_) {
      device_->Forward(bottom[0]->device_data(), top[0]->device_data(), chosen_on_device_);
      if (top.size() > 1) top[1]->device_data().copy_(chosen_on_device_);
      return;
    }
    const bool mixed = top[0]->layout() != bottom[0]->layout();
    Blob& out = mixed ? aside_ : *top[0];
    if (bottom[0]->layout() == Layout::kChannelsLast) {
      ForwardPixels(bottom[0]->shape(0), bottom[0]->data_ptr(), out.data_ptr());
    } else {
      ForwardPlanes(bottom[0]->data_ptr(), out.data_ptr(),
                    top.size() > 1 ? top[1]->data_ptr() : nullptr);
    }
    if (mixed) top[0]->data().copy_(aside_.data());
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    if (!propagate_down[0]) return;
    Require(pool() != PoolingParameter::STOCHASTIC || context().phase == TRAIN,
            ErrorCode::kInvalidArgument, "STOCHASTIC pooling has a gradient in phase TRAIN only");
    if (device_) {
      device_->Backward(top[0]->device_diff(), bottom[0]->device_data(), chosen_on_device_,
                        bottom[0]->device_diff());
      return;
    }
    if (gates_bottom()) {
      float* dy = top[0]->diff_ptr();
      RectifierGradient(top[0]->data_ptr(), dy, 0, dy, top[0]->count());
    }
    const bool mixed = top[0]->layout() != bottom[0]->layout();
    if (mixed) aside_.diff().copy_(top[0]->diff());
    const float* dy = (mixed ? aside_ : *top[0]).diff_ptr();
    if (bottom[0]->layout() == Layout::kChannelsLast) {
      BackwardPixels(bottom[0]->shape(0), dy, bottom[0]->diff_ptr());
    } else {
      BackwardPlanes(dy, bottom[0]->diff_ptr());
    }
  }

 private:
  void ForwardPixels(int64_t images, const float* x, float* y) {
    const int64_t in = in_size() * channels_last_.channels,
                  out = out_size() * channels_last_.channels;
    ParallelFor(0, images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        if (pool() == PoolingParameter::MAX) {
          channels_last_.Max(x + n * in, y + n * out, &chosen_[n * out]);
        } else {
          channels_last_.Average(x + n * in, y + n * out);
        }
      }
    });
  }

  void BackwardPixels(int64_t images, const float* dy, float* dx) {
    const int64_t in = in_size() * channels_last_.channels,
                  out = out_size() * channels_last_.channels;
    ParallelFor(0, images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        if (pool() == PoolingParameter::MAX) {
          channels_last_.MaxGradient(dy + n * out, &chosen_[n * out], dx + n * in);
        } else {
          channels_last_.AverageGradient(dy + n * out, dx + n * in);
        }
      }
    });
  }

  void ForwardPlanes(const float* x, float* y, float* mask) {
    const bool draws = pool() == PoolingParameter::STOCHASTIC && context().phase == TRAIN;
    if (draws) DrawThresholds();
    ParallelFor(0, planes_, kPlaneGrain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const float* from = x + p * in_size();
        float* to = y + p * out_size();
        if (pool() == PoolingParameter::MAX) {
          MaxPlane(from, to, &chosen_[p * out_size()]);
          if (mask != nullptr) {
            std::copy_n(&chosen_[p * out_size()], out_size(), mask + p * out_size());
          }
        } else if (pool() == PoolingParameter::AVE) {
          AveragePlane(from, to);
        } else if (draws) {
          DrawPlane(from, to, p);
        } else {
          ExpectedPlane(from, to);
        }
      }
    });
  }

  void BackwardPlanes(const float* dy, float* dx) {
    ParallelFor(0, planes_, kPlaneGrain, [&](int64_t begin, int64_t end) {
      std::fill(dx + begin * in_size(), dx + end * in_size(), 0.f);
      for (int64_t p = begin; p < end; ++p) {
        const float* from = dy + p * out_size();
        float* to = dx + p * in_size();
        if (pool() == PoolingParameter::AVE) {
          SpreadPlane(from, to);
        } else {
          const int32_t* chosen = &chosen_[p * out_size()];
          for (int64_t i = 0; i < out_size(); ++i) {
            if (chosen[i] >= 0) to[chosen[i]] += from[i];
          }
        }
      }
    });
  }

  PoolingParameter::PoolMethod pool() const { return param_.pooling_param().pool(); }
  int64_t in_size() const { return rows_.inputs * columns_.inputs; }
  int64_t out_size() const { return rows_.outputs * columns_.outputs; }

  // A window outside of the image has the value -FLT_MAX and the mask -1, as in Caffe.
  void MaxPlane(const float* x, float* y, int32_t* chosen) const {
    for (int64_t oh = 0; oh < rows_.outputs; ++oh) {
      const PoolingAxis::Span v = rows_.Clipped(oh);
      for (int64_t ow = 0; ow < columns_.outputs; ++ow) {
        const PoolingAxis::Span h = columns_.Clipped(ow);
        float best = -FLT_MAX;
        int64_t best_index = -1;
        for (int64_t i = v.begin; i < v.end; ++i) {
          for (int64_t j = h.begin; j < h.end; ++j) {
            const float value = x[i * columns_.inputs + j];
            if (value > best) {
              best = value;
              best_index = i * columns_.inputs + j;
            }
          }
        }
        *y++ = best;
        *chosen++ = static_cast<int32_t>(best_index);
      }
    }
  }

  void AveragePlane(const float* x, float* y) const {
    for (int64_t oh = 0; oh < rows_.outputs; ++oh) {
      const PoolingAxis::Span v = rows_.Clipped(oh);
      for (int64_t ow = 0; ow < columns_.outputs; ++ow) {
        const PoolingAxis::Span h = columns_.Clipped(ow);
        float sum = 0;
        for (int64_t i = v.begin; i < v.end; ++i) {
          for (int64_t j = h.begin; j < h.end; ++j) sum += x[i * columns_.inputs + j];
        }
        *y++ = sum / PoolingAxis::Divisor(rows_, oh, columns_, ow);
      }
    }
  }

  void SpreadPlane(const float* dy, float* dx) const {
    for (int64_t oh = 0; oh < rows_.outputs; ++oh) {
      const PoolingAxis::Span v = rows_.Clipped(oh);
      for (int64_t ow = 0; ow < columns_.outputs; ++ow) {
        const PoolingAxis::Span h = columns_.Clipped(ow);
        const float share = *dy++ / PoolingAxis::Divisor(rows_, oh, columns_, ow);
        for (int64_t i = v.begin; i < v.end; ++i) {
          for (int64_t j = h.begin; j < h.end; ++j) dx[i * columns_.inputs + j] += share;
        }
      }
    }
  }

  void DrawThresholds() {
    thresholds_.resize(chosen_.size());
    for (float& threshold : thresholds_) threshold = context().random->Uniform(0, 1);
  }

  // Chooses one value of each window, with a probability proportional to it.
  void DrawPlane(const float* x, float* y, int64_t plane) {
    int64_t out = plane * out_size();
    for (int64_t oh = 0; oh < rows_.outputs; ++oh) {
      const PoolingAxis::Span v = rows_.Clipped(oh);
      for (int64_t ow = 0; ow < columns_.outputs; ++ow, ++out) {
        const PoolingAxis::Span h = columns_.Clipped(ow);
        const float threshold = thresholds_[out] * Sums(x, v, h).first;
        float reached = 0;
        int64_t index = -1;
        for (int64_t i = v.begin; i < v.end && (index < 0 || reached < threshold); ++i) {
          for (int64_t j = h.begin; j < h.end && (index < 0 || reached < threshold); ++j) {
            index = i * columns_.inputs + j;
            reached += x[index];
          }
        }
        *y++ = index < 0 ? 0 : x[index];
        chosen_[out] = static_cast<int32_t>(index);
      }
    }
  }

  // In TEST: the expectation of the random choice.
  void ExpectedPlane(const float* x, float* y) const {
    for (int64_t oh = 0; oh < rows_.outputs; ++oh) {
      for (int64_t ow = 0; ow < columns_.outputs; ++ow) {
        const auto [sum, squares] = Sums(x, rows_.Clipped(oh), columns_.Clipped(ow));
        *y++ = sum > 0 ? squares / sum : 0;
      }
    }
  }

  // Sums of the values and of their squares.
  std::pair<float, float> Sums(const float* x, PoolingAxis::Span v, PoolingAxis::Span h) const {
    float sum = 0, squares = 0;
    for (int64_t i = v.begin; i < v.end; ++i) {
      for (int64_t j = h.begin; j < h.end; ++j) {
        const float value = x[i * columns_.inputs + j];
        sum += value;
        squares += value * value;
      }
    }
    return {sum, squares};
  }

  PoolingAxis rows_, columns_;
  ChannelsLastPooling channels_last_;
  Blob aside_;  // the top in the bottom's layout, if they differ
  int64_t planes_ = 0;
  std::vector<int32_t> chosen_;  // MAX and STOCHASTIC: the input index of every output
  std::vector<float> thresholds_;
  std::optional<DevicePooling> device_;  // on a device, if it applies
  Tensor chosen_on_device_;              // likewise
};

}  // namespace

void RegisterPooling(LayerRegistry& registry) { registry.Add<PoolingLayer>("Pooling"); }

}  // namespace hearth::caffe
