#include "hearth/caffe/kernels/matrix_product.h"

#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/kernels/onednn_engine.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

using dnnl::memory;

// Bounds the cache if minibatch sizes keep changing; a net has far fewer kinds of products.
constexpr size_t kMaxCached = 512;

// The cache key of a prepared product. It includes the number of threads, because oneDNN divides
// the work when a kernel is created.
struct Kind {
  using Axes = std::array<int64_t, 4>;  // sizes and strides
  Axes a, b, c;
  bool has_bias, adds;
  int threads;

  // The stride of an axis of size 1 is arbitrary, and oneDNN rejects some values, so such a stride
  // is normalized.
  static Axes Of(const Tensor& m) {
    const int64_t rows = m.size(0), columns = m.size(1);
    const int64_t column = columns == 1 ? 1 : m.stride(1);
    return {rows, columns, rows == 1 ? columns * column : m.stride(0), column};
  }
  bool operator<(const Kind& other) const { return Key() < other.Key(); }

 private:
  std::tuple<Axes, Axes, Axes, bool, bool, int> Key() const {
    return {a, b, c, has_bias, adds, threads};
  }
};

class Prepared {
 public:
  explicit Prepared(const Kind& kind) : a_(Layout(kind.a)), b_(Layout(kind.b)), c_(Layout(kind.c)) {
    if (kind.has_bias) bias_ = {{1, kind.c[1]}, memory::data_type::f32, memory::format_tag::ab};
    primitive_ = OnednnPrimitive(dnnl::matmul::primitive_desc(
        OnednnEngine(), a_, b_, bias_, c_, OnednnPrimitive::Attributes(kind.adds)));
  }

  void Run(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c) const {
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

  memory::desc a_, b_, c_, bias_;
  OnednnPrimitive primitive_;
};

// The reference is valid until the thread's next call, which may clear the cache. The cache is not
// an LRU list, because a net that repeats its shapes never reaches the limit.
const Prepared& PreparedFor(const Kind& kind) {
  thread_local std::map<Kind, Prepared> cache;
  const auto found = cache.find(kind);
  if (found != cache.end()) return found->second;
  if (cache.size() >= kMaxCached) cache.clear();
  return cache.emplace(kind, kind).first->second;
}

void RunOnednn(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, bool adds) {
  const int threads = InParallelRegion() ? 1 : ThreadCount();
  try {
    PreparedFor({Kind::Of(a), Kind::Of(b), Kind::Of(c), bias.defined(), adds, threads})
        .Run(a, b, bias, c);
  } catch (const dnnl::error& error) {
    Throw(ErrorCode::kInternal, "oneDNN's product of {} x {} and {} x {} matrices failed: {}",
          a.size(0), a.size(1), b.size(0), b.size(1), error.message);
  }
}

// oneDNN requires matrices that are dense along one axis.
Tensor DenseAlongAnAxis(const Tensor& m) {
  // The stride of an axis of size 1 is arbitrary, so it does not show that the axis is dense.
  const bool along_columns = m.size(0) != 1 && m.stride(0) == 1;
  const bool dense = along_columns || m.size(1) == 1 || m.stride(1) == 1;
  return dense ? m : m.contiguous();
}

void RunOnHost(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, bool adds) {
  if (c.numel() == 0) return;
  // c has values, so if `a` has none, the inner axis is empty.
  if (a.numel() == 0) {  // empty sums
    if (!adds) c.zero_();
    if (bias.defined()) c.add_(bias);
    return;
  }
  RunOnednn(DenseAlongAnAxis(a), DenseAlongAnAxis(b), bias, c, adds);
}

}  // namespace

void Multiply(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c) {
  if (c.on_host()) {
    RunOnHost(a, b, bias, c, /*adds=*/false);
  } else if (bias.defined()) {
    device::addmm_out(c, bias, a, b);
  } else {
    device::mm_out(c, a, b);
  }
}

void AddProduct(float beta, const Tensor& a, const Tensor& b, const Tensor& c) {
  if (c.on_host()) return RunOnHost(a, b, {}, c, /*adds=*/beta != 0);
  c.addmm_(a, b, beta);
}

void AddProductToDiff(const Tensor& a, const Tensor& b, Blob& weight) {
  const auto [dw, beta] = weight.diff_to_add_to();
  AddProduct(beta, a, b, dw);
}

}  // namespace hearth::caffe
