// The sizes of a convolution for oneDNN. Included only by .cc files.
#pragma once

#include <dnnl.hpp>

#include "hearth/caffe/kernels/onednn_convolution.h"

namespace hearth::caffe {

// A convolution's sizes in oneDNN's form: images with their channels last, and row-major weights.
struct OnednnShape {
  using Tag = dnnl::memory::format_tag;

  explicit OnednnShape(const OnednnConvolution::Spec& spec)
      : x{spec.batch, spec.channels},
        y{spec.batch, spec.outputs},
        w{spec.outputs / spec.group, spec.channels / spec.group} {
    const size_t axes = spec.kernel.size();
    x.insert(x.end(), spec.input.begin(), spec.input.end());
    y.insert(y.end(), spec.output.begin(), spec.output.end());
    w.insert(w.end(), spec.kernel.begin(), spec.kernel.end());
    if (spec.group > 1) w.insert(w.begin(), spec.group);
    constexpr Tag kRowMajor[] = {Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
    images = axes == 1 ? Tag::nwc : axes == 2 ? Tag::nhwc : Tag::ndhwc;
    weights = kRowMajor[w.size() - 3];
    for (size_t i = 0; i < axes; ++i) {
      dilation.push_back(spec.dilation[i] - 1);
      // The last window may not reach the end of the image, so the trailing padding may be
      // negative.
      const int64_t reach = spec.dilation[i] * (spec.kernel[i] - 1) + 1;
      pad_end.push_back((spec.output[i] - 1) * spec.stride[i] + reach - spec.input[i] -
                        spec.pad[i]);
    }
  }

  dnnl::memory::dims x, y, w, dilation, pad_end;
  Tag images, weights;
};

}  // namespace hearth::caffe
