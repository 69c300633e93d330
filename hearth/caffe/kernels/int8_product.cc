#include "hearth/caffe/kernels/int8_product.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/kernels/int8_rows.h"
#include "hearth/caffe/kernels/onednn_engine.h"
#include "hearth/caffe/kernels/onednn_reordered.h"
#include "hearth/caffe/kernels/onednn_shape.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

using dnnl::memory;
using Type = memory::data_type;

// The largest number of products of up to 127 * 127 whose sum always fits in 32 bits.
constexpr int64_t kMostProducts = std::numeric_limits<int32_t>::max() / (127 * 127);
constexpr int64_t kInt8Grain = 16384;  // minimum number of values per thread

// Allocates memory for bytes, as a tensor of floats.
Tensor EmptyBytes(size_t bytes) {
  return Tensor::Empty({static_cast<int64_t>(bytes / sizeof(float) + 1)});
}
int8_t* BytesOf(const Tensor& tensor) { return reinterpret_cast<int8_t*>(tensor.data_ptr()); }

// Runs f and converts oneDNN's exceptions to hearth::Error.
template <typename Function>
auto GuardedInt8(const char* what, Function f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    Throw(ErrorCode::kInternal, "oneDNN's int8 product failed in {}: {}", what, error.message);
  }
}

// Calls f(row number, its first value) for each row, on several threads.
template <typename Value, typename Function>
void ForEachRow(Value* values, int64_t rows, int64_t size, const Function& f) {
  ParallelFor(0, rows, kInt8Grain / std::max<int64_t>(1, size) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) f(row, values + row * size);
              });
}

}  // namespace

struct Int8Product::Primitives {
  using Make = std::function<dnnl::primitive_desc_base(const memory::desc& x)>;

  // A oneDNN kernel for one type of x: uint8, which is faster, for inputs without negative values,
  // or int8. Both kernels represent such inputs by the values [0, 127], so the results are the
  // same.
  struct Kernel {
    dnnl::primitive_desc_base desc;
    OnednnPrimitive primitive;
    Tensor weights;  // packed; undefined before the first use
    std::optional<OnednnReordered> x_in;
  };

  // oneDNN's reference kernels ("ref:any" and others) are far slower than float32's.
  static bool IsFast(const dnnl::primitive_desc_base& desc) {
    return std::string_view(desc.impl_info_str()).find("ref") == std::string_view::npos;
  }

  // Returns false if there is no fast kernel. `x_of` returns the layout of x for a type.
  bool Plan(const std::function<memory::desc(Type)>& x_of, const Make& make) {
    if (!IsSupported()) return false;
    x = {x_of(Type::u8), x_of(Type::s8)};
    try {
      // Both kernels must be fast, because only Forward knows whether x has negative values.
      for (size_t i = 0; i < x.size(); ++i) {
        kernels[i].desc = make(x[i]);
        if (!IsFast(kernels[i].desc)) return false;
      }
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_unimplemented) return false;
      throw;
    }
    return true;
  }

  // Quantizes the weights, with one scale per output from its largest magnitude, and packs them for
  // `kernel`. Does not set the other kernel's weights, which are packed in a different order.
  void TakeWeights(const Tensor& w, Kernel* kernel) {
    const int64_t outputs = static_cast<int64_t>(w_scales.size()), size = w.numel() / outputs;
    const Tensor dense = w.contiguous();
    const Tensor rounded = EmptyBytes(static_cast<size_t>(w.numel()));
    ForEachRow(dense.data_ptr(), outputs, size, [&](int64_t output, const float* values) {
      const float scale = w_scales[static_cast<size_t>(output)] = RangeOf(values, size).scale;
      Quantize(values, size, scale, BytesOf(rounded) + output * size);
    });
    const memory::desc packed = kernel->desc.query_md(dnnl::query::weights_md);
    kernel->weights = EmptyBytes(packed.get_size());
    OnednnPrimitive(dnnl::reorder::primitive_desc(OnednnEngine(), plain_w, OnednnEngine(), packed,
                                                  OnednnPrimitive::Attributes()))
        .Execute({{DNNL_ARG_FROM, OnednnMemory(plain_w, rounded)},
                  {DNNL_ARG_TO, OnednnMemory(packed, kernel->weights)}});
    kernel->primitive = OnednnPrimitive(kernel->desc);
  }

  // Computes the ranges of all images and returns the kernel for them: the signed one if the
  // minibatch has any negative value.
  Kernel& KernelFor(const Tensor& values, const Tensor& w) {
    const int64_t rows = values.size(0);
    ranges.resize(static_cast<size_t>(rows));
    ForEachRow(values.data_ptr(), rows, values.numel() / rows,
               [&, size = values.numel() / rows](int64_t row, const float* image) {
                 ranges[static_cast<size_t>(row)] = RangeOf(image, size);
               });
    const bool is_signed = std::any_of(ranges.begin(), ranges.end(),
                                       [](const Int8Range& range) { return range.has_negative; });
    Kernel& kernel = kernels[is_signed ? 1 : 0];
    if (!kernel.weights.defined()) TakeWeights(w, &kernel);
    return kernel;
  }

  // Returns the rounded values in the kernel's layout.
  memory TakeImages(const Tensor& values, Kernel* kernel) {
    const int64_t rows = values.size(0), size = values.numel() / rows;
    const bool is_signed = kernel == &kernels[1];
    // Values are rounded in the order of the float32 values; oneDNN then reorders them for the
    // kernel. In both layouts of a blob, the batch axis comes first, so the bytes of an image are
    // contiguous.
    const memory::desc layout(values.sizes(), is_signed ? Type::s8 : Type::u8, values.strides());
    const memory rounded = OnednnScratchMemory(layout, OnednnScratch::kRounded);
    auto* bytes = static_cast<int8_t*>(rounded.get_data_handle());
    ForEachRow(values.data_ptr(), rows, size, [&](int64_t row, const float* image) {
      Quantize(image, size, ranges[static_cast<size_t>(row)].scale, bytes + row * size);
    });
    return OnednnReordered::Cached(kernel->x_in, OnednnScratch::kImage, layout, x[is_signed])
        .Take(rounded);
  }

  // Computes y[row, position, o] = sum * x scale[row] * w scale[o] + b[o] in place. This is a
  // separate pass because oneDNN 3.2 supports one scale per tensor. In y, the outputs are the last
  // axis.
  void Rescale(float* sums, const Tensor& b) {
    const int64_t outputs = static_cast<int64_t>(w_scales.size());
    const auto rows = static_cast<int64_t>(ranges.size());
    const int64_t size = static_cast<int64_t>(y.get_size() / sizeof(float)) / rows;
    if (!b.defined()) zeros.resize(w_scales.size());
    const float* bias = b.defined() ? b.data_ptr() : zeros.data();
    ForEachRow(sums, rows, size, [&](int64_t row, float* image) {
      std::vector<float> scales(w_scales);
      for (float& scale : scales) scale *= ranges[static_cast<size_t>(row)].scale;
      ScaleRows(image, size / outputs, outputs, scales.data(), bias);
    });
  }

  std::array<memory::desc, 2> x;  // uint8, int8
  memory::desc plain_w, y;
  std::array<Kernel, 2> kernels;
  std::vector<float> w_scales;    // per output
  std::vector<Int8Range> ranges;  // per image of the last x
  std::vector<float> zeros;
  std::optional<OnednnReordered> y_out;
};

Int8Product::Int8Product(std::unique_ptr<Primitives> primitives)
    : primitives_(std::move(primitives)) {}

Int8Product::~Int8Product() = default;

bool Int8Product::IsSupported() {
  static const bool supported = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    // The bits for VNNI with 256-bit and 512-bit registers; newer instruction sets include them.
    const bool has_vnni = (isa & (dnnl_cpu_isa_avx2_vnni & ~dnnl_cpu_isa_avx2)) != 0 ||
                          (isa & (dnnl_cpu_isa_avx512_core_vnni & ~dnnl_cpu_isa_avx512_core)) != 0;
    if (!has_vnni) {
      log::Warning(
          "precision int8 is computed in float32: oneDNN finds no VNNI instructions on this CPU");
    }
    return has_vnni;
  }();
  return supported;
}

template <typename XOf, typename Make>
std::unique_ptr<Int8Product> Int8Product::Planned(std::unique_ptr<Primitives>& plan,
                                                  const XOf& x_of, const Make& make) {
  const bool fast = GuardedInt8("planning", [&] { return plan->Plan(x_of, make); });
  if (!fast) return nullptr;
  return std::unique_ptr<Int8Product>(new Int8Product(std::move(plan)));
}

std::unique_ptr<Int8Product> Int8Product::OfConvolution(const OnednnConvolution::Spec& spec) {
  // Products per sum: the size of the window times the channels that an output reads.
  const int64_t products = std::accumulate(spec.kernel.begin(), spec.kernel.end(),
                                           spec.channels / spec.group, std::multiplies<>());
  if (products > kMostProducts) return nullptr;
  const OnednnShape shape(spec);
  auto plan = std::make_unique<Primitives>();
  plan->w_scales.resize(static_cast<size_t>(spec.outputs));
  plan->plain_w = {shape.w, Type::s8, shape.weights};
  plan->y = {shape.y, Type::f32, shape.images};
  const memory::desc w(shape.w, Type::s8, memory::format_tag::any);
  const auto make = [&](const memory::desc& x) {
    return dnnl::convolution_forward::primitive_desc(
        OnednnEngine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x,
        w, plan->y, spec.stride, shape.dilation, spec.pad, shape.pad_end,
        OnednnPrimitive::Attributes());
  };
  const auto x_of = [&](Type type) { return memory::desc(shape.x, type, shape.images); };
  return Planned(plan, x_of, make);
}

std::unique_ptr<Int8Product> Int8Product::OfMatrices(const Matrices& sizes) {
  const auto [rows, inputs, outputs] = sizes;
  if (rows * inputs * outputs == 0 || inputs > kMostProducts) return nullptr;
  auto plan = std::make_unique<Primitives>();
  plan->w_scales.resize(static_cast<size_t>(outputs));
  // oneDNN computes x w and expects w as [inputs, outputs]. In memory w is [outputs, inputs], so
  // the layout `ba` describes it transposed.
  plan->plain_w = {{inputs, outputs}, Type::s8, memory::format_tag::ba};
  plan->y = {{rows, outputs}, Type::f32, memory::format_tag::ab};
  const memory::desc w({inputs, outputs}, Type::s8, memory::format_tag::any);
  const auto make = [&](const memory::desc& x) {
    return dnnl::matmul::primitive_desc(OnednnEngine(), x, w, plan->y,
                                        OnednnPrimitive::Attributes());
  };
  const auto x_of = [&, shape = memory::dims{rows, inputs}](Type type) {
    return memory::desc(shape, type, memory::format_tag::ab);
  };
  return Planned(plan, x_of, make);
}

void Int8Product::Forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) {
  Primitives& p = *primitives_;
  GuardedInt8("forward", [&] {
    // The order matters: TakeImages() and Rescale() use the ranges that KernelFor() computes, and
    // Give() converts the rescaled values to the layout of y.
    Primitives::Kernel& kernel = p.KernelFor(x, w);
    const memory images = p.TakeImages(x, &kernel);
    OnednnReordered& y_out =
        OnednnReordered::Cached(p.y_out, OnednnScratch::kOutput, p.y, OnednnLayout(y));
    const memory sums = y_out.Room(y);
    const memory::desc packed = kernel.desc.query_md(dnnl::query::weights_md);
    kernel.primitive.Execute({{DNNL_ARG_SRC, images},
                              {DNNL_ARG_WEIGHTS, OnednnMemory(packed, kernel.weights)},
                              {DNNL_ARG_DST, sums}});
    p.Rescale(static_cast<float*>(sums.get_data_handle()), b);
    y_out.Give(y);
  });
}

void Int8Product::ForgetWeights() {
  for (Primitives::Kernel& kernel : primitives_->kernels) kernel.weights.reset();
}

}  // namespace hearth::caffe
