#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/upgrade_steps.h"

namespace hearth::caffe {
namespace {

// Creates the layer that replaces the net's `input` fields.
LayerParameter MakeInputLayer(const NetParameter& net) {
  LayerParameter layer;
  layer.set_name("input");
  layer.set_type("Input");
  *layer.mutable_top() = net.input();
  // Shapes are in input_shape, or in the older input_dim, which has four numbers (N, C, H, W) for
  // each input.
  const bool has_shapes = net.input_shape_size() > 0;
  for (int i = 0; i < net.input_size(); ++i) {
    BlobShape* shape = layer.mutable_input_param()->add_shape();
    if (has_shapes) *shape = net.input_shape(i);
    for (int j = 4 * i; !has_shapes && j < 4 * (i + 1); ++j) shape->add_dim(net.input_dim(j));
  }
  return layer;
}

}  // namespace

bool UpgradeInputs(NetParameter* net, const std::string& name) {
  const int inputs = net->input_size();
  const int shapes = net->input_shape_size(), dims = net->input_dim_size();
  if (inputs + shapes + dims == 0) return false;
  // A model file may have inputs without shapes, because only its weights are used.
  if (inputs > 0 && shapes + dims > 0) {
    Require(shapes > 0 ? shapes == inputs : dims == 4 * inputs, ErrorCode::kInvalidArgument,
            "{}: {} input(s) need {} input_dim or {} input_shape, found {} and {}", name, inputs,
            4 * inputs, inputs, dims, shapes);
    net->mutable_layer()->insert(net->mutable_layer()->begin(), MakeInputLayer(*net));
  }
  net->clear_input();
  net->clear_input_dim();
  net->clear_input_shape();
  return true;
}

// If a BatchNorm layer has three ParamSpecs, the file sets the multipliers of its statistics. They
// must be 0, because no solver may change the statistics.
bool UpgradeBatchNorms(NetParameter* net) {
  bool upgraded = false;
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "BatchNorm" || layer.param_size() != 3) continue;
    for (ParamSpec& param : *layer.mutable_param()) {
      upgraded |= !param.has_lr_mult() || param.lr_mult() != 0 || !param.has_decay_mult() ||
                  param.decay_mult() != 0;
      param.set_lr_mult(0);
      param.set_decay_mult(0);
    }
  }
  return upgraded;
}

}  // namespace hearth::caffe
