#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {

void RegisterAllLayers(LayerRegistry& registry) {
  RegisterAccuracy(registry);
  RegisterActivations(registry);
  RegisterArgMax(registry);
  RegisterBatchNorm(registry);
  RegisterConcatSlice(registry);
  RegisterConvolution(registry);
  RegisterCosData(registry);
  RegisterCrop(registry);
  RegisterDatabaseData(registry);
  RegisterDropout(registry);
  RegisterEltwise(registry);
  RegisterEmbed(registry);
  RegisterHdf5Data(registry);
  RegisterHdf5Output(registry);
  RegisterIm2col(registry);
  RegisterImageData(registry);
  RegisterInfogainLoss(registry);
  RegisterInnerProduct(registry);
  RegisterInputData(registry);
  RegisterLosses(registry);
  RegisterLrn(registry);
  RegisterLstm(registry);
  RegisterMemoryData(registry);
  RegisterMvn(registry);
  RegisterPairLosses(registry);
  RegisterPooling(registry);
  RegisterPowers(registry);
  RegisterPythonLayer(registry);
  RegisterReduction(registry);
  RegisterRelu(registry);
  RegisterRnn(registry);
  RegisterRowChoice(registry);
  RegisterScaleBias(registry);
  RegisterShapeOps(registry);
  RegisterSoftmax(registry);
  RegisterSoftmaxLoss(registry);
  RegisterSpp(registry);
  RegisterTile(registry);
  RegisterWindowData(registry);
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
