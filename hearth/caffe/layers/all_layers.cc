#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {

void RegisterAllLayers(LayerRegistry& registry) {
  RegisterAccuracy(registry);
  RegisterActivations(registry);
  RegisterBatchNorm(registry);
  RegisterConcatSlice(registry);
  RegisterConvolution(registry);
  RegisterCosData(registry);
  RegisterDropout(registry);
  RegisterEltwise(registry);
  RegisterInnerProduct(registry);
  RegisterInputData(registry);
  RegisterLosses(registry);
  RegisterLrn(registry);
  RegisterMemoryData(registry);
  RegisterPairLosses(registry);
  RegisterPooling(registry);
  RegisterPowers(registry);
  RegisterReduction(registry);
  RegisterRelu(registry);
  RegisterScaleBias(registry);
  RegisterShapeOps(registry);
  RegisterSoftmax(registry);
  RegisterSoftmaxLoss(registry);
}

const LayerRegistry& LayerRegistry::Default() {
  static const LayerRegistry registry = [] {
    LayerRegistry all;
    RegisterAllLayers(all);
    return all;
  }();
  return registry;
}

}  // namespace hearth::caffe
