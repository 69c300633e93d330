#include "hearth/caffe/kernels/onednn_convolution.h"

#include <optional>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/onednn_engine.h"
#include "hearth/caffe/kernels/onednn_reordered.h"
#include "hearth/caffe/kernels/onednn_shape.h"

namespace hearth::caffe {
namespace {

using dnnl::memory;
using Reordered = OnednnReordered;

constexpr auto kFloat = memory::data_type::f32;

// Runs f and converts oneDNN's exceptions to hearth::Error, which names the step and the sizes.
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

}  // namespace

struct OnednnConvolution::Primitives {
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  // Images have their channels last, like the blobs between convolutions, so those blobs are used
  // without a copy. oneDNN chooses the weights' layout, because it is fastest with blocks; each
  // call reorders the weights, because they change in every iteration. With bfloat16, the factors
  // of products (x, w and dy) are bfloat16, while results stay float32.
  explicit Primitives(const Spec& given) : spec(given), shape(given) {
    const auto type = spec.bfloat16 ? memory::data_type::bf16 : kFloat;
    x = {shape.x, type, shape.images};
    dx = {shape.x, kFloat, shape.images};
    y = {shape.y, kFloat, shape.images};
    dy = {shape.y, type, shape.images};
    w = {shape.w, type, memory::format_tag::any};
    dw = {shape.w, kFloat, memory::format_tag::any};
    plain_w = {shape.w, kFloat, shape.weights};
    if (spec.has_bias) b = {{spec.outputs}, kFloat, memory::format_tag::x};
    forward_desc = Forward::primitive_desc(OnednnEngine(), dnnl::prop_kind::forward_training,
                                           dnnl::algorithm::convolution_direct, x, w, b, y,
                                           spec.stride, shape.dilation, spec.pad, shape.pad_end,
                                           OnednnPrimitive::Attributes());
    forward = OnednnPrimitive(forward_desc);
  }

  // MakeBackwardData() and MakeBackwardWeights() are called in the first backward pass, because a
  // net that only runs forward needs neither primitive.
  void MakeBackwardData() {
    const BackwardData::primitive_desc desc(
        OnednnEngine(), dnnl::algorithm::convolution_direct, dx, w, dy, spec.stride, shape.dilation,
        spec.pad, shape.pad_end, forward_desc, OnednnPrimitive::Attributes());
    backward_data = OnednnPrimitive(desc);
    backward_w = desc.weights_desc();
  }
  void MakeBackwardWeights() {
    const BackwardWeights::primitive_desc desc(
        OnednnEngine(), dnnl::algorithm::convolution_direct, x, dw, dy, spec.stride, shape.dilation,
        spec.pad, shape.pad_end, forward_desc, OnednnPrimitive::Attributes());
    backward_weights = OnednnPrimitive(desc);
    diff_w = desc.diff_weights_desc();
  }

  const Spec spec;
  const OnednnShape shape;
  memory::desc x, dx, y, dy, w, dw, b, plain_w, backward_w, diff_w;
  Forward::primitive_desc forward_desc;
  OnednnPrimitive forward, backward_data, backward_weights;
  // One reorder per argument and direction. x_in and dy_in each serve two primitives, which use the
  // same layout.
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
    // All layers of a thread share the scratch memory, so each of the three arguments uses a
    // different kind of buffer.
    Reordered& x_in = Reordered::Cached(p.x_in, OnednnScratch::kImage, OnednnLayout(x), p.x);
    Reordered& w_in = Reordered::Cached(p.w_in, OnednnScratch::kWeights, p.plain_w,
                                        p.forward_desc.weights_desc());
    Reordered& y_out = Reordered::Cached(p.y_out, OnednnScratch::kOutput, p.y, OnednnLayout(y));
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
    Reordered& dy_in = Reordered::Cached(p.dy_in, OnednnScratch::kOutput, OnednnLayout(dy), p.dy);
    Reordered& w_in =
        Reordered::Cached(p.backward_w_in, OnednnScratch::kWeights, p.plain_w, p.backward_w);
    Reordered& dx_out = Reordered::Cached(p.dx_out, OnednnScratch::kImage, p.dx, OnednnLayout(dx));
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
    Reordered& x_in = Reordered::Cached(p.x_in, OnednnScratch::kImage, OnednnLayout(x), p.x);
    Reordered& dy_in = Reordered::Cached(p.dy_in, OnednnScratch::kOutput, OnednnLayout(dy), p.dy);
    const bool adds = beta != 0;
    // A reorder primitive either adds or overwrites, so there are two: dw_added and dw_out.
    Reordered& dw_out = Reordered::Cached(adds ? p.dw_added : p.dw_out, OnednnScratch::kWeights,
                                          p.diff_w, p.plain_w, adds);
    p.backward_weights.Execute({{DNNL_ARG_SRC, x_in.Take(x)},
                                {DNNL_ARG_DIFF_DST, dy_in.Take(dy)},
                                {DNNL_ARG_DIFF_WEIGHTS, dw_out.Room(dw)}});
    dw_out.Give(dw);
  });
}

}  // namespace hearth::caffe
