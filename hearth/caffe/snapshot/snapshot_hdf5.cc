#include "hearth/caffe/snapshot/snapshot_hdf5.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "hearth/base/error.h"
#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/proto_shape.h"

namespace hearth::caffe {
namespace {

bool HasDiffs(const NetParameter& model) {
  return std::any_of(model.layer().begin(), model.layer().end(), [](const LayerParameter& layer) {
    return std::any_of(layer.blobs().begin(), layer.blobs().end(),
                       [](const BlobProto& blob) { return !blob.diff().empty(); });
  });
}

// Parameters are shared by name: the first layer that uses the name owns the parameter.
bool IsOwned(const LayerParameter& layer, size_t i, std::set<std::string>* names) {
  if (i >= layer.param().size() || layer.param()[i].name().empty()) return true;
  return names->insert(layer.param()[i].name()).second;
}

// The index in a name such as "3"; empty if the name is not a number.
std::optional<size_t> Index(const std::string& name) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  // No layer has that many parameters. The limit prevents a number from a damaged file from
  // determining the size of an allocation.
  constexpr size_t kMost = 1 << 16;
  if (error != std::errc() || end != name.data() + name.size() || index > kMost) return {};
  return index;
}

// Rejects files in which a group or dataset has two names. With links, a group could contain
// itself, or a small file could describe any number of layers. Caffe writes no links.
class SeenObjects {
 public:
  explicit SeenObjects(const Hdf5File& file) : file_(file) {}

  void Add(const std::string& path) {
    Require(seen_.insert(file_.Identity(path)).second, ErrorCode::kDataLoss,
            "{}: {} also has another name; links between layers are not supported", file_.name(),
            path);
  }

 private:
  const Hdf5File& file_;
  std::set<std::string> seen_;
};

class LayerReader {
 public:
  LayerReader(const Hdf5File& file, NetParameter* model)
      : file_(file), model_(model), seen_(file) {}

  // Reads the layers in the group /data/<name>: the layer <name>, if the group has parameters or is
  // empty, and the layers in its subgroups. A name with slashes is stored as nested groups.
  void Read(const std::string& name, int depth) {
    const std::string group = name.empty() ? "/data" : "/data/" + name;
    Require(depth <= kDeepest, ErrorCode::kDataLoss,
            "{}: groups are nested deeper than {}, at {}...", file_.name(), kDeepest,
            group.substr(0, 100));
    LayerParameter layer;
    layer.set_name(name);
    bool is_layer = true;
    const std::vector<std::string> children = file_.Children(group);
    seen_.Add(group);
    for (const std::string& child : children) {
      const std::string path = name.empty() ? child : name + "/" + child;
      if (file_.IsGroup("/data/" + path)) {
        Read(path, depth + 1);
        is_layer = !layer.blobs().empty();
      } else if (const std::optional<size_t> index = Index(child)) {
        if (layer.blobs().size() <= *index) layer.mutable_blobs()->resize(*index + 1);
        ReadBlob(path, &(*layer.mutable_blobs())[*index]);
        is_layer = true;
      }
    }
    if (is_layer && !name.empty()) *model_->add_layer() = std::move(layer);
  }

 private:
  static constexpr int kDeepest = 64;

  void ReadBlob(const std::string& layer_and_index, BlobProto* blob) {
    const std::string data = "/data/" + layer_and_index, diff = "/diff/" + layer_and_index;
    *blob->mutable_shape()->mutable_dim() = file_.ShapeOf(data);
    seen_.Add(data);
    *blob->mutable_data() = file_.ReadFloats(data);
    if (!file_.Has(diff)) return;
    Require(file_.ShapeOf(diff) == blob->shape().dim(), ErrorCode::kDataLoss,
            "{}: the shape of dataset {} differs from that of {}", file_.name(), diff, data);
    *blob->mutable_diff() = file_.ReadFloats(diff);
  }

  const Hdf5File& file_;
  NetParameter* model_;
  SeenObjects seen_;
};

}  // namespace

bool IsHdf5Name(const std::string& uri) { return uri.ends_with(".h5"); }

// The layout is the same as in Caffe's Net::ToHDF5: /data/<layer>/<i> for parameter i and
// /diff/<layer>/<i> for its gradient. A state has /iter, /learned_net, /current_step and
// /history/<i>.
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
      // As in Caffe, the diff of a shared parameter is written for every layer that uses it, but
      // its values only for the owner.
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
  LayerReader(file, &model).Read("", 0);
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
  SeenObjects seen(file);
  for (size_t i = 0; i < count; ++i) {
    const std::string path = "/history/" + std::to_string(i);
    BlobProto* blob = state.add_history();
    *blob->mutable_shape()->mutable_dim() = file.ShapeOf(path);
    seen.Add(path);
    *blob->mutable_data() = file.ReadFloats(path);
  }
  return state;
}

}  // namespace hearth::caffe
