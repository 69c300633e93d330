#include "hearth/caffe/data/mean_file.h"

#include "hearth/base/error.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/tensor/proto_shape.h"
#include "hearth/caffe/tensor/shape_count.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {

MeanImage ReadMeanFile(const std::string& uri) {
  BlobProto proto;
  ParseWire(storage::ReadFile(uri), uri, &proto);
  std::vector<int64_t> shape = ShapeOf(proto);
  // Builds of Caffe for double write only double_data.
  std::vector<float> values = proto.data();
  if (values.empty()) values.assign(proto.double_data().begin(), proto.double_data().end());
  // Drops a leading 1, the number of images.
  while (shape.size() > 3 && shape.front() == 1) shape.erase(shape.begin());
  const auto count = static_cast<int64_t>(values.size());
  Require(shape.size() == 3 && CountOf(shape) == count, ErrorCode::kDataLoss,
          "mean file {} has {} values, but its shape is not that of one image (channels x height x "
          "width)",
          uri, count);
  return {shape[0], shape[1], shape[2], std::move(values)};
}

// Writes the shape as num, channels, height and width, which every version of Caffe can read.
void WriteMeanFile(const MeanImage& mean, const std::string& uri) {
  BlobProto proto;
  proto.set_num(1);
  proto.set_channels(static_cast<int32_t>(mean.channels));
  proto.set_height(static_cast<int32_t>(mean.height));
  proto.set_width(static_cast<int32_t>(mean.width));
  *proto.mutable_data() = mean.values;
  storage::AtomicFile file(uri);
  file.Append(WireBytes(proto));
  file.Commit();
}

}  // namespace hearth::caffe
