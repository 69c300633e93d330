// oneDNN's engine, and what it computes with, for this room's kernels on the CPU. Included by their
// .cc files only.
#pragma once

#include <array>
#include <cstdint>
#include <dnnl.hpp>
#include <unordered_map>

#include "hearth/caffe/net/tensor.h"

namespace hearth::caffe {

// One engine serves all threads; a stream belongs to one. Callers keep their primitives: oneDNN's
// cache is off, because a torch that is loaded, too, exports vtables of a newer copy that the
// loader binds to this one.
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

// The description of a float32 tensor's memory as it lies.
inline dnnl::memory::desc OnednnLayout(const Tensor& t) {
  return {t.sizes(), dnnl::memory::data_type::f32, t.strides()};
}

// What scratch memory is for: no call needs two of a kind.
enum class OnednnScratch { kPicture, kWeights, kOutput, kPrimitive };

// One for each kind, shared by all layers of a thread: no value outlives the call that made it.
inline dnnl::memory OnednnScratchMemory(const dnnl::memory::desc& desc, OnednnScratch kind) {
  thread_local std::array<Tensor, 4> buffers;
  Tensor& buffer = buffers[static_cast<size_t>(kind)];
  const auto size = static_cast<int64_t>(desc.get_size() / sizeof(float) + 1);
  if (!buffer.defined() || buffer.numel() < size) {
    buffer.reset();  // before the larger one is there
    buffer = Tensor::Empty({size});
  }
  return OnednnMemory(desc, buffer);
}

// A primitive that any thread may execute, one at a time. Its scratch memory is the caller's: what
// oneDNN keeps for it belongs to the thread that made the primitive, and is freed with that.
class OnednnPrimitive {
 public:
  OnednnPrimitive() = default;
  // `desc` must have been made with Attributes().
  template <typename Desc>
  explicit OnednnPrimitive(const Desc& desc)
      : primitive_(desc.get()), scratchpad_(desc.scratchpad_desc()) {}

  // `adds`: the result is added to what its memory holds.
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
