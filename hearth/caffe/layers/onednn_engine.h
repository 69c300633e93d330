// oneDNN's engine and stream for this room's kernels on the CPU. Included by their .cc files only.
#pragma once

#include <ATen/core/Tensor.h>

#include <dnnl.hpp>

namespace hearth::caffe {

// One engine serves all threads; a stream belongs to one.
inline dnnl::engine& OnednnEngine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

inline dnnl::stream& OnednnStream() {
  thread_local dnnl::stream stream(OnednnEngine());
  return stream;
}

inline dnnl::memory OnednnMemory(const dnnl::memory::desc& desc, const at::Tensor& tensor) {
  return dnnl::memory(desc, OnednnEngine(), tensor.data_ptr());
}

// The description of a float32 tensor's memory as it lies.
inline dnnl::memory::desc OnednnLayout(const at::Tensor& t) {
  return {t.sizes().vec(), dnnl::memory::data_type::f32, t.strides().vec()};
}

}  // namespace hearth::caffe
