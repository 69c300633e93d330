#include "hearth/caffe/kernels/onednn_convolution.h"

#include <optional>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/onednn_engine.h"

namespace hearth::caffe {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using memory_dims = memory::dims;

constexpr auto kFloat = memory::data_type::f32;

template <typename Function>
auto Guarded(const char* what, const OnednnConvolution::Spec& spec, Function f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    Require(!spec.bfloat16 || error.status != dnnl_unimplemented, ErrorCode::kUnimplemented,
            "oneDNN supports no bfloat16 on this CPU (it needs AVX-512): use "
            "float32 precision");
    Throw(ErrorCode::kInternal,
          "oneDNN's convolution failed in {} ({}) for {} images of {} channels and {} outputs",
          what, error.message, spec.batch, spec.channels, spec.outputs);
  }
}

// Row-major, with that many axes.
memory::format_tag PlainTag(size_t axes) {
  constexpr Tag kTags[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
  return kTags[axes - 1];
}

}  // namespace

// Converts to the primitive's layout or type, through scratch memory, if it differs from the
// caller's.
class OnednnConvolution::Reordered {
 public:
  Reordered(OnednnScratch role, const memory::desc& from, const memory::desc& to, bool adds)
      : role_(role), from_(from), to_(to), same_(from == to && !adds) {
    if (same_) return;
    reorder_ = OnednnPrimitive(dnnl::reorder::primitive_desc(
        OnednnEngine(), from, OnednnEngine(), to, OnednnPrimitive::Attributes(adds)));
  }

  bool Leads(const memory::desc& from, const memory::desc& to) const {
    return from == from_ && to == to_;
  }

  // The tensor's values in the required layout.
  memory Take(const Tensor& tensor) {
    if (same_) return OnednnMemory(from_, tensor);
    const memory scratch = OnednnScratchMemory(to_, role_);
    Copy(OnednnMemory(from_, tensor), scratch);
    return scratch;
  }

  // Memory in the primitive's layout, whose values Give then copies to the tensor.
  memory Room(const Tensor& tensor) const {
    return same_ ? OnednnMemory(to_, tensor) : OnednnScratchMemory(from_, role_);
  }
  void Give(const Tensor& tensor) {
    if (!same_) Copy(OnednnScratchMemory(from_, role_), OnednnMemory(to_, tensor));
  }

 private:
  void Copy(memory from, memory to) {
    reorder_.Execute({{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  OnednnScratch role_;
  memory::desc from_, to_;
  bool same_;
  OnednnPrimitive reorder_;
};

struct OnednnConvolution::Primitives {
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  explicit Primitives(const Spec& given) : spec(given) {
    const auto weights_dims = [&]() -> memory_dims {
      memory_dims dims{spec.outputs / spec.group, spec.channels / spec.group};
      dims.insert(dims.end(), spec.kernel.begin(), spec.kernel.end());
      if (spec.group > 1) dims.insert(dims.begin(), spec.group);
      return dims;
    }();
    const auto type = spec.bfloat16 ? memory::data_type::bf16 : kFloat;
    memory_dims x_dims{spec.batch, spec.channels}, y_dims{spec.batch, spec.outputs};
    x_dims.insert(x_dims.end(), spec.input.begin(), spec.input.end());
    y_dims.insert(y_dims.end(), spec.output.begin(), spec.output.end());
    const size_t axes = spec.kernel.size();
    const Tag last = axes == 1 ? Tag::nwc : axes == 2 ? Tag::nhwc : Tag::ndhwc;
    x = {x_dims, type, last};
    dx = {x_dims, kFloat, last};
    y = {y_dims, kFloat, last};
    dy = {y_dims, type, last};
    w = {weights_dims, type, Tag::any};
    dw = {weights_dims, kFloat, Tag::any};
    plain_w = {weights_dims, kFloat, PlainTag(weights_dims.size())};
    if (spec.has_bias) b = {{spec.outputs}, kFloat, Tag::x};
    for (size_t i = 0; i < axes; ++i) {
      dilation.push_back(spec.dilation[i] - 1);
      // The last window may leave a remainder unused, so the trailing padding may be negative.
      const int64_t reach = spec.dilation[i] * (spec.kernel[i] - 1) + 1;
      pad_end.push_back((spec.output[i] - 1) * spec.stride[i] + reach - spec.input[i] -
                        spec.pad[i]);
    }
    forward_desc = Forward::primitive_desc(
        OnednnEngine(), dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x,
        w, b, y, spec.stride, dilation, spec.pad, pad_end, OnednnPrimitive::Attributes());
    forward = OnednnPrimitive(forward_desc);
  }

  // Created on first use, then reused while the layouts are the same.
  static Reordered& Cached(std::optional<Reordered>& cached, OnednnScratch role,
                           const memory::desc& from, const memory::desc& to, bool adds = false) {
    if (!cached || !cached->Leads(from, to)) cached.emplace(role, from, to, adds);
    return *cached;
  }

  void MakeBackwardData() {
    const BackwardData::primitive_desc desc(OnednnEngine(), dnnl::algorithm::convolution_direct, dx,
                                            w, dy, spec.stride, dilation, spec.pad, pad_end,
                                            forward_desc, OnednnPrimitive::Attributes());
    backward_data = OnednnPrimitive(desc);
    backward_w = desc.weights_desc();
  }
  void MakeBackwardWeights() {
    const BackwardWeights::primitive_desc desc(OnednnEngine(), dnnl::algorithm::convolution_direct,
                                               x, dw, dy, spec.stride, dilation, spec.pad, pad_end,
                                               forward_desc, OnednnPrimitive::Attributes());
    backward_weights = OnednnPrimitive(desc);
    diff_w = desc.diff_weights_desc();
  }

  const Spec spec;
  memory::desc x, dx, y, dy, w, dw, b, plain_w, backward_w, diff_w;
  memory_dims dilation, pad_end;
  Forward::primitive_desc forward_desc;
  OnednnPrimitive forward, backward_data, backward_weights;
  std::optional<Reordered> x_in, y_out, w_in, dy_in, dx_out, backward_w_in, dw_out, dw_added;
};

OnednnConvolution::OnednnConvolution(const Spec& spec) {
  Guarded("planning", spec, [&] { primitives_ = std::make_unique<Primitives>(spec); });
}

OnednnConvolution::~OnednnConvolution() = default;

const OnednnConvolution::Spec& OnednnConvolution::spec() const { return primitives_->spec; }

void OnednnConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) {
  Primitives& p = *primitives_;
  Guarded("forward", p.spec, [&] {
    Reordered& x_in = p.Cached(p.x_in, OnednnScratch::kImage, OnednnLayout(x), p.x);
    Reordered& w_in =
        p.Cached(p.w_in, OnednnScratch::kWeights, p.plain_w, p.forward_desc.weights_desc());
    Reordered& y_out = p.Cached(p.y_out, OnednnScratch::kOutput, p.y, OnednnLayout(y));
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, x_in.Take(x)},
                                              {DNNL_ARG_WEIGHTS, w_in.Take(w)},
                                              {DNNL_ARG_DST, y_out.Room(y)}};
    if (p.spec.has_bias) arguments.emplace(DNNL_ARG_BIAS, OnednnMemory(p.b, b));
    p.forward.Execute(std::move(arguments));
    y_out.Give(y);
  });
}

void OnednnConvolution::BackwardData(const Tensor& dy, const Tensor& w, Tensor& dx) {
  Primitives& p = *primitives_;
  Guarded("backward", p.spec, [&] {
    if (!p.backward_data) p.MakeBackwardData();
    Reordered& dy_in = p.Cached(p.dy_in, OnednnScratch::kOutput, OnednnLayout(dy), p.dy);
    Reordered& w_in = p.Cached(p.backward_w_in, OnednnScratch::kWeights, p.plain_w, p.backward_w);
    Reordered& dx_out = p.Cached(p.dx_out, OnednnScratch::kImage, p.dx, OnednnLayout(dx));
    p.backward_data.Execute({{DNNL_ARG_DIFF_DST, dy_in.Take(dy)},
                             {DNNL_ARG_WEIGHTS, w_in.Take(w)},
                             {DNNL_ARG_DIFF_SRC, dx_out.Room(dx)}});
    dx_out.Give(dx);
  });
}

void OnednnConvolution::BackwardWeights(const Tensor& x, const Tensor& dy, float beta, Tensor& dw) {
  Primitives& p = *primitives_;
  Guarded("backward of the weights", p.spec, [&] {
    if (!p.backward_weights) p.MakeBackwardWeights();
    Reordered& x_in = p.Cached(p.x_in, OnednnScratch::kImage, OnednnLayout(x), p.x);
    Reordered& dy_in = p.Cached(p.dy_in, OnednnScratch::kOutput, OnednnLayout(dy), p.dy);
    const bool adds = beta != 0;
    Reordered& dw_out =
        p.Cached(adds ? p.dw_added : p.dw_out, OnednnScratch::kWeights, p.diff_w, p.plain_w, adds);
    p.backward_weights.Execute({{DNNL_ARG_SRC, x_in.Take(x)},
                                {DNNL_ARG_DIFF_DST, dy_in.Take(dy)},
                                {DNNL_ARG_DIFF_WEIGHTS, dw_out.Room(dw)}});
    dw_out.Give(dw);
  });
}

}  // namespace hearth::caffe
