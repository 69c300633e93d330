#include "hearth/caffe/kernels/device_labels.h"

#include <ATen/ATen.h>

namespace hearth::caffe {

DeviceLabels DeviceLabels::Of(Blob& labels, const ClassLayout& layout,
                              std::optional<int64_t> ignored) {
  DeviceLabels on_device;
  const float* values = labels.read_data();
  for (int64_t i = 0; i < layout.outer * layout.inner; ++i) {
    on_device.valid += ClassLabel(values, i, layout.classes, ignored).has_value();
  }
  at::Tensor& index = on_device.index;
  index = labels.device_data_to_read().view({layout.outer, 1, layout.inner}).to(at::kLong);
  on_device.ignored = ignored ? index == *ignored : at::zeros_like(index, at::kBool);
  index.masked_fill_(on_device.ignored, 0);
  return on_device;
}

}  // namespace hearth::caffe
