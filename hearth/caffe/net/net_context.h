#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/compute_device.h"
#include "hearth/caffe/tensor/random.h"
#include "hearth/dataset/spool/minibatch.h"

namespace hearth::caffe {

// The precision of products in convolutions. kInt8, which is for TEST nets on CPUs, also applies to
// inner products. Sums, stored weights and everything else are float32.
enum class Precision { kFloat32, kBfloat16, kInt8 };
// Parses "float32", "bf16" or "int8". Throws kInvalidArgument for other names.
inline Precision ParsePrecision(std::string_view name) {
  Require(name == "float32" || name == "bf16" || name == "int8", ErrorCode::kInvalidArgument,
          "precision must be float32, bf16 or int8, not '{}'", name);
  if (name == "int8") return Precision::kInt8;
  return name == "bf16" ? Precision::kBfloat16 : Precision::kFloat32;
}

// Settings of a net that the program passes in addition to the prototxt.
struct NetContext {
  Phase phase = TRAIN;
  // If the device has separate memory, blobs do not share memory: share_data has no effect, and
  // share_diffs only enables JoinNormalizations().
  ComputeDevice device;
  // Opens the row source of a data layer that is fed by rows. Empty if the net has no such layer.
  std::function<std::shared_ptr<dataset::MinibatchSource>(const LayerParameter&)> open_source;
  // Random numbers for fillers, dropout and augmentation, shared by the net's layers.
  std::shared_ptr<Random> random;
  // Layers that read files distribute their items over the ranks of a run: in TRAIN, rank r reads
  // item r and then every ranks-th item. Their random choices depend only on `seed` and the item,
  // so the images are the same for any number of ranks.
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  // If true, the diffs of blobs share memory where lifetimes allow; they are then invalid after
  // Backward.
  bool share_diffs = false;
  // For nets that only run forward: if true, the values of blobs share memory where lifetimes
  // allow. The values of the net's outputs and of `kept_blobs` are valid until the next Forward.
  bool share_data = false;
  std::vector<std::string> kept_blobs;
  Precision precision = Precision::kFloat32;
  bool resize_images = false;  // CaffeOnSpark's -resize
  int transform_threads = 1;   // threads that decode and transform images
  // Called with the row id and the reason for each invalid row (undecodable or wrong-sized image).
  std::function<void(const std::string&, const std::string&)> on_invalid_row;
};

}  // namespace hearth::caffe
