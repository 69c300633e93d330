#include "hearth/caffe/layers/testing/layer_testing.h"

#include <algorithm>
#include <random>

#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

Array MakeInput(const CaseInput& input, Shape shape, std::mt19937& random) {
  Array array(std::move(shape));
  const auto count = static_cast<float>(array.Count());
  for (size_t i = 0; i < array.values.size(); ++i) {
    if (input.classes > 0) {
      array.values[i] = static_cast<float>(input.first_class) + random() % input.classes;
    } else {
      array.values[i] = input.low + (i + 0.5f) * (input.high - input.low) / count;
    }
  }
  std::shuffle(array.values.begin(), array.values.end(), random);
  return array;
}

}  // namespace

int64_t Array::Count() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

int64_t Array::Offset(const Shape& position) const {
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + position[i];
  return offset;
}

Array ValuesOf(Blob& blob) {
  const Tensor plain = blob.data().contiguous();
  const float* values = plain.data_ptr();
  return {blob.shape(), {values, values + blob.count()}};
}

void SetValues(const Array& array, Tensor& tensor) {
  tensor.copy_(Tensor::Over(const_cast<float*>(array.values.data()), array.shape));
}

LayerRun::LayerRun(const LayerCase& layer_case, bool in_place) : case_(layer_case) {
  LayerParameter param;
  ParseText(case_.layer, case_.name, &param);
  param.set_name(case_.name);
  for (int i = param.top_size(); i < case_.tops; ++i) param.add_top("top" + std::to_string(i));
  NetContext context;
  context.phase = case_.phase;
  context.random = std::make_shared<Random>(5);
  context.device = case_.device;
  if (case_.prepare_context) case_.prepare_context(&context);
  layer_ = LayerRegistry::Default().Create(param, context);

  const auto add = [this](Blobs* blobs) {
    storage_.push_back(std::make_unique<Blob>());
    storage_.back()->set_device(case_.device);
    blobs->push_back(storage_.back().get());
  };
  for (size_t i = 0; i < case_.bottoms.size(); ++i) add(&bottom_pointers_);
  for (int i = 0; i < case_.tops; ++i) {
    if (in_place && i == 0) {
      top_pointers_.push_back(bottom_pointers_[0]);
    } else {
      add(&top_pointers_);
    }
  }
  FillBottoms(0, 1);
  layer_->SetUp(bottom_pointers_, top_pointers_);
  std::mt19937 random(2);
  for (const auto& blob : layer_->blobs()) {
    blob->set_device(case_.device);
    SetValues(MakeInput({{}, -0.9f, 1.1f}, blob->shape(), random), blob->data());
  }
  if (case_.prepare_layer) case_.prepare_layer(layer_.get());
}

void LayerRun::FillBottoms(int64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  for (size_t i = 0; i < case_.bottoms.size(); ++i) {
    Shape shape = case_.bottoms[i].shape;
    if (rows > 0) shape[0] = rows;
    bottom_pointers_[i]->Reshape(shape);
    SetValues(MakeInput(case_.bottoms[i], shape, random), bottom_pointers_[i]->data());
  }
}

void LayerRun::SetLayouts(Layout bottoms, Layout tops) {
  for (Blob* blob : bottom_pointers_) blob->set_layout(bottoms);
  for (Blob* blob : top_pointers_) blob->set_layout(tops);
  FillBottoms(0, 1);
}

void LayerRun::Forward() {
  layer_->Reshape(bottom_pointers_, top_pointers_);
  layer_->Forward(bottom_pointers_, top_pointers_);
}

std::vector<bool> LayerRun::propagate_down() const {
  std::vector<bool> propagate(bottom_pointers_.size(), true);
  for (const int bottom : case_.without_gradient) propagate[bottom] = false;
  return propagate;
}

void LayerRun::Backward(const Arrays& top_diffs) {
  for (size_t i = 0; i < top_diffs.size(); ++i) {
    SetValues(top_diffs[i], top_pointers_[i]->diff());
  }
  layer_->Backward(top_pointers_, propagate_down(), bottom_pointers_);
}

Arrays LayerRun::ParamValues() const {
  Arrays arrays;
  for (const auto& blob : layer_->blobs()) arrays.push_back(ValuesOf(*blob));
  return arrays;
}

Arrays LayerRun::Values(const Blobs& blobs) {
  Arrays arrays;
  for (Blob* blob : blobs) arrays.push_back(ValuesOf(*blob));
  return arrays;
}

namespace {

std::vector<std::vector<LayerCase> (*)()>& Families() {
  static std::vector<std::vector<LayerCase> (*)()> families;
  return families;
}

}  // namespace

bool AddLayerCases(std::vector<LayerCase> (*cases)()) {
  Families().push_back(cases);
  return true;
}

std::vector<LayerCase> AllLayerCases() {
  std::vector<LayerCase> all;
  for (const auto& cases : Families()) {
    for (LayerCase& row : cases()) all.push_back(std::move(row));
  }
  return all;
}

}  // namespace hearth::caffe
