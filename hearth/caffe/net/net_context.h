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

// Precision of the products in convolutions, and of kInt8, which is for TEST nets on CPUs, in inner
// products too. Sums, the stored weights and everything else are float32.
enum class Precision { kFloat32, kBfloat16, kInt8 };
// "float32", "bf16" or "int8". Throws kInvalidArgument for other names.
inline Precision ParsePrecision(std::string_view name) {
  Require(name == "float32" || name == "bf16" || name == "int8", ErrorCode::kInvalidArgument,
          "precision must be float32, bf16 or int8, not '{}'", name);
  if (name == "int8") return Precision::kInt8;
  return name == "bf16" ? Precision::kBfloat16 : Precision::kFloat32;
}

// Settings of a net from its user, in addition to its prototxt.
struct NetContext {
  Phase phase = TRAIN;
  // If it has its own memory, share_diffs and share_data have no effect.
  ComputeDevice device;
  // Opens the row source of a fed data layer; empty if the net is not fed by rows.
  std::function<std::shared_ptr<dataset::MinibatchSource>(const LayerParameter&)> open_source;
  // Random numbers of this net: fillers, dropout, augmentation. Shared by its layers.
  std::shared_ptr<Random> random;
  // Layers that read files distribute the items over the solvers of a run: in TRAIN, rank r reads
  // every ranks-th item from item r. Their random choices follow from `seed` and the item, so that
  // any number of ranks sees the same images.
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  // Blobs' diffs share memory if lifetimes allow: they are then invalid after Backward.
  bool share_diffs = false;
  // For nets that only run forward: blobs' values share memory if lifetimes allow. Those of the
  // net's outputs and of `kept_blobs` are valid until the next Forward.
  bool share_data = false;
  std::vector<std::string> kept_blobs;
  Precision precision = Precision::kFloat32;
  bool resize_images = false;  // CaffeOnSpark's -resize
  int transform_threads = 1;   // for decoding and transforming images
  // Called for invalid rows (undecodable or wrong-sized image): (row id, reason).
  std::function<void(const std::string&, const std::string&)> on_invalid_row;
};

}  // namespace hearth::caffe
