#include <array>
#include <utility>

#include "hearth/caffe/proto/copy_fields.h"
#include "hearth/caffe/upgrade/upgrade_layer.h"

namespace hearth::caffe {
namespace {

using V1 = V1LayerParameter;

// The current names of V1's layer types.
constexpr std::array<std::pair<V1::LayerType, const char*>, 39> kTypeNames = {{
    {V1::ABSVAL, "AbsVal"},
    {V1::ACCURACY, "Accuracy"},
    {V1::ARGMAX, "ArgMax"},
    {V1::BNLL, "BNLL"},
    {V1::CONCAT, "Concat"},
    {V1::CONTRASTIVE_LOSS, "ContrastiveLoss"},
    {V1::CONVOLUTION, "Convolution"},
    {V1::DATA, "Data"},
    {V1::DECONVOLUTION, "Deconvolution"},
    {V1::DROPOUT, "Dropout"},
    {V1::DUMMY_DATA, "DummyData"},
    {V1::ELTWISE, "Eltwise"},
    {V1::EUCLIDEAN_LOSS, "EuclideanLoss"},
    {V1::EXP, "Exp"},
    {V1::FLATTEN, "Flatten"},
    {V1::HDF5_DATA, "HDF5Data"},
    {V1::HDF5_OUTPUT, "HDF5Output"},
    {V1::HINGE_LOSS, "HingeLoss"},
    {V1::IM2COL, "Im2col"},
    {V1::IMAGE_DATA, "ImageData"},
    {V1::INFOGAIN_LOSS, "InfogainLoss"},
    {V1::INNER_PRODUCT, "InnerProduct"},
    {V1::LRN, "LRN"},
    {V1::MEMORY_DATA, "MemoryData"},
    {V1::MULTINOMIAL_LOGISTIC_LOSS, "MultinomialLogisticLoss"},
    {V1::MVN, "MVN"},
    {V1::POOLING, "Pooling"},
    {V1::POWER, "Power"},
    {V1::RELU, "ReLU"},
    {V1::SIGMOID, "Sigmoid"},
    {V1::SIGMOID_CROSS_ENTROPY_LOSS, "SigmoidCrossEntropyLoss"},
    {V1::SILENCE, "Silence"},
    {V1::SLICE, "Slice"},
    {V1::SOFTMAX, "Softmax"},
    {V1::SOFTMAX_LOSS, "SoftmaxWithLoss"},
    {V1::SPLIT, "Split"},
    {V1::TANH, "TanH"},
    {V1::THRESHOLD, "Threshold"},
    {V1::WINDOW_DATA, "WindowData"},
}};

// Returns "" for an unknown type: the weights of such a file can be read, but its net cannot be
// built.
const char* TypeName(V1::LayerType type) {
  for (const auto& [known, name] : kTypeNames) {
    if (known == type) return name;
  }
  return "";
}

// Replaces the lists of names and of share modes with one ParamSpec per parameter.
void UpgradeSharing(const V1& old, LayerParameter* layer) {
  auto& params = *layer->mutable_param();
  params.resize(std::max({params.size(), old.param().size(), old.blob_share_mode().size()}));
  for (int i = 0; i < old.param_size(); ++i) params[i].set_name(old.param(i));
  for (int i = 0; i < old.blob_share_mode_size(); ++i) {
    const bool strict = old.blob_share_mode(i) == V1::STRICT;
    params[i].set_share_mode(strict ? ParamSpec::STRICT : ParamSpec::PERMISSIVE);
  }
}

// Moves scale, mean file, crop size and mirror from the data layer's parameters to transform_param.
template <typename DataParam>
void MoveTransform(DataParam* from, LayerParameter* layer) {
  const auto to = [&] { return layer->mutable_transform_param(); };
  if (from->has_scale()) to()->set_scale(from->scale());
  if (from->has_mean_file()) to()->set_mean_file(from->mean_file());
  if (from->has_crop_size()) to()->set_crop_size(from->crop_size());
  if (from->has_mirror()) to()->set_mirror(from->mirror());
  // Removes the old fields, so a net that is written later has each setting only in
  // transform_param.
  from->clear_scale();
  from->clear_mean_file();
  from->clear_crop_size();
  from->clear_mirror();
}

template <typename DataParam>
bool HasTransformFields(const DataParam& param) {
  return param.has_scale() || param.has_mean_file() || param.has_crop_size() || param.has_mirror();
}

}  // namespace

bool HasOldTransform(const V1LayerParameter& old) {
  return (old.type() == V1::DATA && HasTransformFields(old.data_param())) ||
         (old.type() == V1::IMAGE_DATA && HasTransformFields(old.image_data_param())) ||
         (old.type() == V1::WINDOW_DATA && HasTransformFields(old.window_data_param()));
}

void AddTransform(LayerParameter* layer) {
  if (layer->type() == "Data") {
    layer->mutable_data_param();
  } else if (layer->type() == "ImageData") {
    layer->mutable_image_data_param();
  } else if (layer->type() == "WindowData") {
    layer->mutable_window_data_param();
  } else {
    return;
  }
  layer->mutable_transform_param();
}

// Most fields have the same name and type in both formats and are copied according to the schema.
// The others are converted here: the type was an enum, parameters were shared by lists of names,
// and multipliers were lists.
LayerParameter UpgradeV1Layer(V1LayerParameter* old) {
  LayerParameter layer;
  *layer.mutable_blobs() = std::move(*old->mutable_blobs());
  old->clear_blobs();
  CopyFields(*old, &layer);
  if (old->has_type()) layer.set_type(TypeName(old->type()));
  UpgradeSharing(*old, &layer);
  UpgradeMultipliers(*old, &layer);
  if (layer.has_data_param()) MoveTransform(layer.mutable_data_param(), &layer);
  if (layer.has_image_data_param()) MoveTransform(layer.mutable_image_data_param(), &layer);
  if (layer.has_window_data_param()) MoveTransform(layer.mutable_window_data_param(), &layer);
  return layer;
}

}  // namespace hearth::caffe
