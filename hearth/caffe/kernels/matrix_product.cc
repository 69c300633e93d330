#include "hearth/caffe/kernels/matrix_product.h"

#include <ATen/ATen.h>

#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/onednn_engine.h"
#include "hearth/caffe/net/parallel.h"

namespace hearth::caffe {
namespace {

using dnnl::memory;

// A thread sees few kinds of products; one whose minibatches differ each time must not keep all.
constexpr size_t kMostKept = 512;

// What a product is prepared for.
struct Kind {
  using Axes = std::array<int64_t, 4>;  // sizes and strides
  Axes a, b, c;
  bool has_bias, adds;
  int threads;

  static Axes Of(const at::Tensor& m) { return {m.size(0), m.size(1), m.stride(0), m.stride(1)}; }
  bool operator<(const Kind& other) const { return Key() < other.Key(); }

 private:
  std::tuple<Axes, Axes, Axes, bool, bool, int> Key() const {
    return {a, b, c, has_bias, adds, threads};
  }
};

// Without a primitive where oneDNN has no fast one.
class Prepared {
 public:
  explicit Prepared(const Kind& kind) {
    try {
      Prepare(kind);
    } catch (const dnnl::error&) {
      // Layouts that oneDNN does not know.
    }
  }

  bool is_fast() const { return static_cast<bool>(primitive_); }

  void Run(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
           const at::Tensor& c) const {
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, OnednnMemory(a_, a)},
                                              {DNNL_ARG_WEIGHTS, OnednnMemory(b_, b)},
                                              {DNNL_ARG_DST, OnednnMemory(c_, c)}};
    if (bias.defined()) arguments.emplace(DNNL_ARG_BIAS, OnednnMemory(bias_, bias));
    primitive_.Execute(std::move(arguments));
  }

 private:
  static memory::desc Layout(const Kind::Axes& m) {
    return {{m[0], m[1]}, memory::data_type::f32, memory::dims{m[2], m[3]}};
  }

  void Prepare(const Kind& kind) {
    a_ = Layout(kind.a);
    b_ = Layout(kind.b);
    c_ = Layout(kind.c);
    if (kind.has_bias) bias_ = {{1, kind.c[1]}, memory::data_type::f32, memory::format_tag::ab};
    const dnnl::matmul::primitive_desc desc(OnednnEngine(), a_, b_, bias_, c_,
                                            OnednnPrimitive::Attributes(kind.adds));
    // Its kernels for AVX-512; what it has for other CPUs is no faster than ATen's library.
    if (std::string_view(desc.impl_info_str()).starts_with("brg"))
      primitive_ = OnednnPrimitive(desc);
  }

  memory::desc a_, b_, c_, bias_;
  OnednnPrimitive primitive_;
};

const Prepared& PreparedFor(const Kind& kind) {
  thread_local std::map<Kind, Prepared> kept;
  const auto found = kept.find(kind);
  if (found != kept.end()) return found->second;
  if (kept.size() >= kMostKept) kept.clear();
  return kept.emplace(kind, kind).first->second;
}

// Whether oneDNN did it.
bool RunOnednn(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
               const at::Tensor& c, bool adds) {
  if (!c.device().is_cpu() || a.numel() == 0 || b.numel() == 0) return false;
  const int threads = InParallelRegion() ? 1 : ThreadCount();
  const Prepared& prepared =
      PreparedFor({Kind::Of(a), Kind::Of(b), Kind::Of(c), bias.defined(), adds, threads});
  if (!prepared.is_fast()) return false;
  try {
    prepared.Run(a, b, bias, c);
  } catch (const dnnl::error& error) {
    Throw(ErrorCode::kInternal, "oneDNN's product of {} x {} and {} x {} matrices failed: {}",
          a.size(0), a.size(1), b.size(0), b.size(1), error.message);
  }
  return true;
}

}  // namespace

void Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, at::Tensor c) {
  if (RunOnednn(a, b, bias, c, /*adds=*/false)) return;
  if (bias.defined()) {
    at::addmm_out(c, bias, a, b);
  } else {
    at::mm_out(c, a, b);
  }
}

void AddProduct(float beta, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  if (!RunOnednn(a, b, {}, c, /*adds=*/beta != 0)) c.addmm_(a, b, beta);
}

void AddProductToDiff(const at::Tensor& a, const at::Tensor& b, Blob& weight) {
  const auto [dw, beta] = weight.diff_to_add_to();
  AddProduct(beta, a, b, dw);
}

}  // namespace hearth::caffe
