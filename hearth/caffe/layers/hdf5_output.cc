// HDF5Output: writes its two bottoms to a file, to the datasets `data` and `label`.
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {
namespace {

// The blob's shape with four axes, as in Caffe; missing axes have length 1.
Shape LegacyShape(const Blob& blob) {
  Require(blob.num_axes() <= 4, ErrorCode::kInvalidArgument,
          "a bottom of shape {} has more than the four axes that the file supports",
          blob.ShapeString());
  Shape shape = blob.shape();
  shape.resize(4, 1);
  return shape;
}

// Appends the rows of every Forward to the file, which is created empty when the net is built.
class Hdf5OutputLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.arity = {2, 2, 0, 0}, .never_forced = {0, 1}}; }

  void SetUp(const Blobs&, const Blobs&) override {
    std::string name = param_.hdf5_output_param().file_name();
    Require(!name.empty(), ErrorCode::kInvalidArgument,
            "hdf5_output_param has no file_name; set it to the output file");
    // One file per rank, because an HDF5 file can have only one writer at a time.
    if (context().rank > 0) name += fmt::format(".rank{}", context().rank);
    file_ = Hdf5File::Create(name);
  }

  void Reshape(const Blobs& bottom, const Blobs&) override {
    Require(bottom[0]->shape(0) == bottom[1]->shape(0), ErrorCode::kInvalidArgument,
            "the bottoms have {} and {} rows; give as many labels as data", bottom[0]->shape(0),
            bottom[1]->shape(0));
  }

  void Forward(const Blobs& bottom, const Blobs&) override {
    // The datasets have the same names as in Caffe.
    file_->AppendRows("/data", LegacyShape(*bottom[0]), bottom[0]->data_ptr());
    file_->AppendRows("/label", LegacyShape(*bottom[1]), bottom[1]->data_ptr());
  }

  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 private:
  std::optional<Hdf5File> file_;
};

}  // namespace

void RegisterHdf5Output(LayerRegistry& registry) { registry.Add<Hdf5OutputLayer>("HDF5Output"); }

}  // namespace hearth::caffe
