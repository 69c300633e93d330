#include "hearth/caffe/hdf5/snapshot_hdf5.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "hearth/caffe/blob_proto.h"
#include "hearth/caffe/hdf5/hdf5_file.h"

namespace hearth::caffe {
namespace {

bool HasDiffs(const NetParameter& model) {
  return std::any_of(model.layer().begin(), model.layer().end(), [](const LayerParameter& layer) {
    return std::any_of(layer.blobs().begin(), layer.blobs().end(),
                       [](const BlobProto& blob) { return !blob.diff().empty(); });
  });
}

// Shared by name: the first layer that has the name owns the parameter.
bool IsOwned(const LayerParameter& layer, size_t i, std::set<std::string>* names) {
  if (i >= layer.param().size() || layer.param()[i].name().empty()) return true;
  return names->insert(layer.param()[i].name()).second;
}

// 3 of "3"; nothing for what is no number.
std::optional<size_t> Index(const std::string& name) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  // Far more than any layer has: a number from a damaged file must not become an allocation.
  constexpr size_t kMost = 1 << 16;
  if (error != std::errc() || end != name.data() + name.size() || index > kMost) return {};
  return index;
}

void ReadBlob(const Hdf5File& file, const std::string& layer_and_index, BlobProto* blob) {
  const std::string data = "/data/" + layer_and_index, diff = "/diff/" + layer_and_index;
  *blob->mutable_shape()->mutable_dim() = file.ShapeOf(data);
  *blob->mutable_data() = file.ReadFloats(data);
  if (file.Has(diff)) *blob->mutable_diff() = file.ReadFloats(diff);
}

// The layers in the group /data/<name>: itself if it has parameters or nothing, and those below.
void ReadLayers(const Hdf5File& file, const std::string& name, NetParameter* model) {
  LayerParameter layer;
  layer.set_name(name);
  bool is_layer = true;
  for (const std::string& child : file.Children(name.empty() ? "/data" : "/data/" + name)) {
    const std::string path = name.empty() ? child : name + "/" + child;
    if (file.IsGroup("/data/" + path)) {
      ReadLayers(file, path, model);
      is_layer = !layer.blobs().empty();
    } else if (const std::optional<size_t> index = Index(child)) {
      if (layer.blobs().size() <= *index) layer.mutable_blobs()->resize(*index + 1);
      ReadBlob(file, path, &(*layer.mutable_blobs())[*index]);
      is_layer = true;
    }
  }
  if (is_layer && !name.empty()) *model->add_layer() = std::move(layer);
}

}  // namespace

bool IsHdf5Name(const std::string& uri) { return uri.ends_with(".h5"); }

void WriteModelHdf5(const NetParameter& model, const std::string& uri) {
  Hdf5File file = Hdf5File::InMemory();
  const bool has_diffs = HasDiffs(model);
  file.MakeGroup("/data");
  if (has_diffs) file.MakeGroup("/diff");
  std::set<std::string> names;
  for (const LayerParameter& layer : model.layer()) {
    file.MakeGroup("/data/" + layer.name());
    if (has_diffs) file.MakeGroup("/diff/" + layer.name());
    for (size_t i = 0; i < layer.blobs().size(); ++i) {
      const BlobProto& blob = layer.blobs()[i];
      const std::string path = layer.name() + "/" + std::to_string(i);
      if (IsOwned(layer, i, &names)) {
        file.WriteFloats("/data/" + path, ShapeOf(blob), blob.data().data());
      }
      if (!blob.diff().empty()) {
        file.WriteFloats("/diff/" + path, ShapeOf(blob), blob.diff().data());
      }
    }
  }
  file.Save(uri);
}

NetParameter ReadModelHdf5(const std::string& uri) {
  const Hdf5File file = Hdf5File::Open(uri);
  NetParameter model;
  ReadLayers(file, "", &model);
  return model;
}

void WriteStateHdf5(const SolverState& state, const std::string& uri) {
  Hdf5File file = Hdf5File::InMemory();
  file.WriteInt("/iter", state.iter());
  file.WriteText("/learned_net", state.learned_net());
  file.WriteInt("/current_step", state.current_step());
  file.MakeGroup("/history");
  for (size_t i = 0; i < state.history().size(); ++i) {
    const BlobProto& blob = state.history()[i];
    file.WriteFloats("/history/" + std::to_string(i), ShapeOf(blob), blob.data().data());
  }
  file.Save(uri);
}

SolverState ReadStateHdf5(const std::string& uri) {
  const Hdf5File file = Hdf5File::Open(uri);
  SolverState state;
  state.set_iter(file.ReadInt("/iter"));
  if (file.Has("/learned_net")) state.set_learned_net(file.ReadText("/learned_net"));
  state.set_current_step(file.ReadInt("/current_step"));
  const size_t count = file.Children("/history").size();
  for (size_t i = 0; i < count; ++i) {
    const std::string path = "/history/" + std::to_string(i);
    BlobProto* blob = state.add_history();
    *blob->mutable_shape()->mutable_dim() = file.ShapeOf(path);
    *blob->mutable_data() = file.ReadFloats(path);
  }
  return state;
}

}  // namespace hearth::caffe
