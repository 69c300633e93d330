// oneDNN's engine and wrappers of its primitives, for this module's CPU kernels. Included only by
// .cc files of this module.
#pragma once

#include <array>
#include <cstdint>
#include <dnnl.hpp>
#include <unordered_map>

#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// All threads share one engine; each has its own stream. Callers cache their primitives. oneDNN's
// cache is disabled, because if torch is loaded, too, the loader binds this copy's vtables to those
// of torch's newer copy of oneDNN.
inline dnnl::engine& OnednnEngine() {
  static dnnl::engine engine = [] {
    dnnl::set_primitive_cache_capacity(0);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

inline dnnl::stream& OnednnStream() {
  thread_local dnnl::stream stream(OnednnEngine());
  return stream;
}

inline dnnl::memory OnednnMemory(const dnnl::memory::desc& desc, const Tensor& tensor) {
  return dnnl::memory(desc, OnednnEngine(), tensor.data_ptr());
}

// The descriptor of a float32 tensor's memory.
inline dnnl::memory::desc OnednnLayout(const Tensor& t) {
  return {t.sizes(), dnnl::memory::data_type::f32, t.strides()};
}

// Purposes of scratch memory: no call needs two buffers of one kind.
enum class OnednnScratch { kImage, kWeights, kOutput, kPrimitive, kRounded };

// Returns the thread's buffer of a kind. All layers of the thread share it, because no layer uses
// its values after the call that wrote them.
inline dnnl::memory OnednnScratchMemory(const dnnl::memory::desc& desc, OnednnScratch kind) {
  thread_local std::array<Tensor, 5> buffers;
  Tensor& buffer = buffers[static_cast<size_t>(kind)];
  const auto size = static_cast<int64_t>(desc.get_size() / sizeof(float) + 1);
  if (!buffer.defined() || buffer.numel() < size) {
    buffer.reset();  // frees the old buffer before the larger one is allocated
    buffer = Tensor::Empty({size});
  }
  return OnednnMemory(desc, buffer);
}

// A primitive that any thread may execute, one at a time. The caller provides its scratch memory,
// because memory that oneDNN allocates belongs to the thread that created the primitive and is
// freed when that thread ends.
class OnednnPrimitive {
 public:
  OnednnPrimitive() = default;
  // `desc` must have been created with Attributes().
  template <typename Desc>
  explicit OnednnPrimitive(const Desc& desc)
      : primitive_(desc.get()), scratchpad_(desc.scratchpad_desc()) {}

  // `adds`: the primitive adds its result to the destination.
  static dnnl::primitive_attr Attributes(bool adds = false) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (adds) {
      dnnl::post_ops sum;
      sum.append_sum(1.f);
      attributes.set_post_ops(sum);
    }
    return attributes;
  }

  explicit operator bool() const { return static_cast<bool>(primitive_); }

  void Execute(std::unordered_map<int, dnnl::memory> arguments) const {
    if (scratchpad_.get_size() > 0) {
      arguments.emplace(DNNL_ARG_SCRATCHPAD,
                        OnednnScratchMemory(scratchpad_, OnednnScratch::kPrimitive));
    }
    primitive_.execute(OnednnStream(), arguments);
  }

 private:
  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
};

}  // namespace hearth::caffe
