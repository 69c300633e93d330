#include <array>
#include <string_view>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/proto/copy_fields.h"
#include "hearth/caffe/proto/nearest.h"
#include "hearth/caffe/upgrade/upgrade_layer.h"

namespace hearth::caffe {
namespace {

// A V0 type, its current name, and the message that now contains its fields.
struct TypeRow {
  std::string_view v0;
  const char* type;
  const char* param;
};

// In V0, one message contains the fields of all types. A field is copied to the message of the
// layer's type, under the same name unless kOwnFields renames it. These tables replace the
// comparisons in Caffe's UpgradeV0LayerParameter.
constexpr std::array<TypeRow, 24> kTypes = {{
    {"accuracy", "Accuracy", ""},
    {"bnll", "BNLL", ""},
    {"concat", "Concat", "concat_param"},
    {"conv", "Convolution", "convolution_param"},
    {"data", "Data", "data_param"},
    {"dropout", "Dropout", "dropout_param"},
    {"euclidean_loss", "EuclideanLoss", ""},
    {"flatten", "Flatten", ""},
    {"hdf5_data", "HDF5Data", "hdf5_data_param"},
    {"hdf5_output", "HDF5Output", "hdf5_output_param"},
    {"im2col", "Im2col", ""},
    {"images", "ImageData", "image_data_param"},
    {"infogain_loss", "InfogainLoss", "infogain_loss_param"},
    {"innerproduct", "InnerProduct", "inner_product_param"},
    {"lrn", "LRN", "lrn_param"},
    {"multinomial_logistic_loss", "MultinomialLogisticLoss", ""},
    {"pool", "Pooling", "pooling_param"},
    {"relu", "ReLU", ""},
    {"sigmoid", "Sigmoid", ""},
    {"softmax", "Softmax", ""},
    {"softmax_loss", "SoftmaxWithLoss", ""},
    {"split", "Split", ""},
    {"tanh", "TanH", ""},
    {"window_data", "WindowData", "window_data_param"},
}};

using Rename = std::pair<std::string_view, std::string_view>;

// V0's names of fields, and their current names. Fields that are not listed have kept their names.
constexpr std::array<Rename, 9> kOwnFields = {{
    {"biasterm", "bias_term"},
    {"kernelsize", "kernel_size"},
    {"batchsize", "batch_size"},
    {"shuffle_images", "shuffle"},
    {"det_fg_threshold", "fg_threshold"},
    {"det_bg_threshold", "bg_threshold"},
    {"det_fg_fraction", "fg_fraction"},
    {"det_context_pad", "context_pad"},
    {"det_crop_mode", "crop_mode"},
}};

// Fields of V0's data layers that are now in transform_param, with their current names.
constexpr std::array<Rename, 4> kTransformFields = {{
    {"scale", "scale"},
    {"meanfile", "mean_file"},
    {"cropsize", "crop_size"},
    {"mirror", "mirror"},
}};

// Fields of all types, which UpgradeField does not handle.
constexpr std::array<std::string_view, 5> kCommonFields = {"name", "type", "blobs", "blobs_lr",
                                                           "weight_decay"};

const TypeRow& RowOf(const V0LayerParameter& old, const std::string& name) {
  std::vector<std::string> known;
  for (const TypeRow& row : kTypes) {
    if (row.v0 == old.type()) return row;
    known.emplace_back(row.v0);
  }
  Throw(ErrorCode::kInvalidArgument, "{}: layer '{}': unknown V0 layer type '{}'{}", name,
        old.name(), old.type(), DidYouMean(old.type(), known));
}

template <size_t N>
const Rename* FindRename(const std::array<Rename, N>& renames, std::string_view field) {
  for (const Rename& rename : renames) {
    if (rename.first == field) return &rename;
  }
  return nullptr;
}

// Copies a field to its current message. Returns false if the layer's type does not use the field.
bool UpgradeField(const V0LayerParameter& old, const FieldDescriptor& field, const TypeRow& row,
                  LayerParameter* layer) {
  if (const Rename* rename = FindRename(kTransformFields, field.name)) {
    TransformationParameter* to = layer->mutable_transform_param();
    CopyField(old, field, *to->descriptor().Find(rename->second), to);
    return true;
  }
  const FieldDescriptor* param = layer->descriptor().Find(std::string_view(row.param));
  if (param == nullptr) return false;
  if (field.type == FieldType::kMessage && &field.message() == &param->message()) {
    CopyField(old, field, *param, layer);  // hdf5_output_param
    return true;
  }
  const Rename* rename = FindRename(kOwnFields, field.name);
  const FieldDescriptor* target = param->message().Find(rename ? rename->second : field.name);
  if (target == nullptr) return false;
  Message& to = param->AddSubmessage(*layer);
  CopyField(old, field, *target, &to);
  return true;
}

}  // namespace

LayerParameter UpgradeV0Layer(V1LayerParameter* connection, const std::string& name) {
  V0LayerParameter& old = *connection->mutable_layer();
  const TypeRow& row = RowOf(old, name);
  LayerParameter layer;
  layer.set_name(old.name());
  layer.set_type(row.type);
  *layer.mutable_bottom() = connection->bottom();
  *layer.mutable_top() = connection->top();
  // The weights of a whole model may have hundreds of megabytes, so they are moved, never copied.
  *layer.mutable_blobs() = std::move(*old.mutable_blobs());
  old.clear_blobs();
  UpgradeMultipliers(old, &layer);
  // Fields that the layer's type does not use are logged, not rejected, because Caffe also reads
  // such files.
  for (const FieldDescriptor& field : old.descriptor().fields) {
    const bool common =
        std::find(kCommonFields.begin(), kCommonFields.end(), field.name) != kCommonFields.end();
    if (common || field.Count(old) == 0 || UpgradeField(old, field, row, &layer)) continue;
    log::Warning(
        "{}: layer '{}': a V0 layer of type {} does not use field {}; the field is ignored", name,
        old.name(), old.type(), field.name);
  }
  return layer;
}

}  // namespace hearth::caffe
