// Every layer family, each registered by one function of its own file. A new family adds one line
// here, one in all_layers.cc and its files to sources.cmake.
#pragma once

#include "hearth/caffe/layer_registry.h"

namespace hearth::caffe {

// What LayerRegistry::Default() is made of.
void RegisterAllLayers(LayerRegistry& registry);

void RegisterAccuracy(LayerRegistry& registry);
void RegisterActivations(LayerRegistry& registry);
void RegisterArgMax(LayerRegistry& registry);
void RegisterBatchNorm(LayerRegistry& registry);
void RegisterConcatSlice(LayerRegistry& registry);
void RegisterConvolution(LayerRegistry& registry);
void RegisterCosData(LayerRegistry& registry);
void RegisterCrop(LayerRegistry& registry);
void RegisterDatabaseData(LayerRegistry& registry);
void RegisterDropout(LayerRegistry& registry);
void RegisterEltwise(LayerRegistry& registry);
void RegisterEmbed(LayerRegistry& registry);
void RegisterHdf5Data(LayerRegistry& registry);
void RegisterHdf5Output(LayerRegistry& registry);
void RegisterIm2col(LayerRegistry& registry);
void RegisterImageData(LayerRegistry& registry);
void RegisterInfogainLoss(LayerRegistry& registry);
void RegisterInnerProduct(LayerRegistry& registry);
void RegisterInputData(LayerRegistry& registry);
void RegisterLosses(LayerRegistry& registry);
void RegisterLrn(LayerRegistry& registry);
void RegisterLstm(LayerRegistry& registry);
void RegisterMemoryData(LayerRegistry& registry);
void RegisterMvn(LayerRegistry& registry);
void RegisterPairLosses(LayerRegistry& registry);
void RegisterPooling(LayerRegistry& registry);
void RegisterPowers(LayerRegistry& registry);
void RegisterPythonLayer(LayerRegistry& registry);
void RegisterReduction(LayerRegistry& registry);
void RegisterRelu(LayerRegistry& registry);
void RegisterRnn(LayerRegistry& registry);
void RegisterRowChoice(LayerRegistry& registry);
void RegisterScaleBias(LayerRegistry& registry);
void RegisterShapeOps(LayerRegistry& registry);
void RegisterSoftmax(LayerRegistry& registry);
void RegisterSoftmaxLoss(LayerRegistry& registry);
void RegisterSpp(LayerRegistry& registry);
void RegisterTile(LayerRegistry& registry);
void RegisterWindowData(LayerRegistry& registry);

}  // namespace hearth::caffe
