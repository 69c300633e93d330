// Conversion between a caller's layout and a oneDNN primitive's. Included only by .cc files.
#pragma once

#include <optional>

#include "hearth/caffe/kernels/onednn_engine.h"

namespace hearth::caffe {

// Converts between the caller's layout or type and the primitive's; if they differ, the converted
// values are in scratch memory.
class OnednnReordered {
 public:
  OnednnReordered(OnednnScratch role, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                  bool adds)
      : role_(role), from_(from), to_(to), same_(from == to && !adds) {
    if (same_) return;
    reorder_ = OnednnPrimitive(dnnl::reorder::primitive_desc(
        OnednnEngine(), from, OnednnEngine(), to, OnednnPrimitive::Attributes(adds)));
  }

  // Creates the conversion on first use, then reuses it while the layouts are the same.
  static OnednnReordered& Cached(std::optional<OnednnReordered>& cached, OnednnScratch role,
                                 const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                 bool adds = false) {
    if (!cached || !cached->Leads(from, to)) cached.emplace(role, from, to, adds);
    return *cached;
  }

  bool Leads(const dnnl::memory::desc& from, const dnnl::memory::desc& to) const {
    return from == from_ && to == to_;
  }

  // Returns the values in the required layout.
  dnnl::memory Take(const Tensor& tensor) { return Take(OnednnMemory(from_, tensor)); }
  dnnl::memory Take(const dnnl::memory& values) {
    if (same_) return values;
    const dnnl::memory scratch = OnednnScratchMemory(to_, role_);
    Copy(values, scratch);
    return scratch;
  }

  // Returns memory in the primitive's layout. Give() then copies its values to the tensor.
  dnnl::memory Room(const Tensor& tensor) const {
    return same_ ? OnednnMemory(to_, tensor) : OnednnScratchMemory(from_, role_);
  }
  void Give(const Tensor& tensor) {
    if (!same_) Copy(OnednnScratchMemory(from_, role_), OnednnMemory(to_, tensor));
  }

 private:
  void Copy(dnnl::memory from, dnnl::memory to) {
    reorder_.Execute({{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  OnednnScratch role_;
  dnnl::memory::desc from_, to_;
  bool same_;
  OnednnPrimitive reorder_;
};

}  // namespace hearth::caffe
