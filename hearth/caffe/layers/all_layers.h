// List of all layer families, by the suffix of their registration function: Accuracy for
// RegisterAccuracy in the family's own file. A new family adds one row.
#pragma once

#include "hearth/caffe/net/layer_registry.h"

#define HEARTH_LAYER_FAMILIES(ROW) \
  ROW(Accuracy)                    \
  ROW(Activations)                 \
  ROW(ArgMax)                      \
  ROW(BatchNorm)                   \
  ROW(CaffeOnSparkData)            \
  ROW(ConcatSlice)                 \
  ROW(Convolution)                 \
  ROW(Crop)                        \
  ROW(DatabaseData)                \
  ROW(Dropout)                     \
  ROW(Eltwise)                     \
  ROW(Embed)                       \
  ROW(FilterReindex)               \
  ROW(Hdf5Data)                    \
  ROW(Hdf5Output)                  \
  ROW(Im2col)                      \
  ROW(ImageData)                   \
  ROW(InfogainLoss)                \
  ROW(InnerProduct)                \
  ROW(InputData)                   \
  ROW(Losses)                      \
  ROW(Lrn)                         \
  ROW(Lstm)                        \
  ROW(MemoryData)                  \
  ROW(Mvn)                         \
  ROW(PairLosses)                  \
  ROW(Pooling)                     \
  ROW(Powers)                      \
  ROW(PythonLayer)                 \
  ROW(Reduction)                   \
  ROW(Relu)                        \
  ROW(Rnn)                         \
  ROW(ScaleBias)                   \
  ROW(ShapeOps)                    \
  ROW(Softmax)                     \
  ROW(SoftmaxLoss)                 \
  ROW(Spp)                         \
  ROW(Tile)                        \
  ROW(WindowData)

namespace hearth::caffe {

// Content of LayerRegistry::Default().
void RegisterAllLayers(LayerRegistry& registry);

#define HEARTH_DECLARE(family) void Register##family(LayerRegistry& registry);
HEARTH_LAYER_FAMILIES(HEARTH_DECLARE)
#undef HEARTH_DECLARE

}  // namespace hearth::caffe
