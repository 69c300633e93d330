#include "hearth/caffe/kernels/device_labels.h"

#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {

DeviceLabels DeviceLabels::Of(Blob& labels, const ClassLayout& layout,
                              std::optional<int64_t> ignored) {
  DeviceLabels on_device;
  // Labels are checked on the host, without marking the device's copy as stale. A check on the
  // device would have to wait for its result in the middle of the iteration.
  const float* values = labels.read_data();
  for (int64_t i = 0; i < layout.outer * layout.inner; ++i) {
    on_device.valid += ClassLabel(values, i, layout.classes, ignored).has_value();
  }
  Tensor& index = on_device.index;
  // The conversion truncates, as TruncatedLabel() does.
  index = labels.device_data_to_read().view({layout.outer, 1, layout.inner}).to(HEARTH_LONG);
  on_device.ignored = ignored ? index == *ignored : device::zeros_like(index, HEARTH_BOOL);
  // ATen's gather and scatter accept only valid classes, so ignored labels become class 0; users of
  // `index` mask them.
  index.masked_fill_(on_device.ignored, 0);
  return on_device;
}

}  // namespace hearth::caffe
