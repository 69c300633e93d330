#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/net/layer.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/net/net_context.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/blob.h"

namespace hearth::caffe {

// A layer of a net, and the blobs that it reads and writes.
struct NetLayer {
  std::unique_ptr<Layer> layer;
  LayerTraits traits;
  Blobs bottom, top;
  std::vector<int> bottom_ids, top_ids;    // positions in NetGraph::blobs
  std::vector<float> loss_weights;         // one per top
  std::vector<bool> bottom_need_backward;  // whether Backward must write the diff of each bottom
  bool need_backward = false;
};

// The connected layers and blobs of a net.
struct NetGraph {
  std::string name;
  bool force_backward = false;
  std::vector<NetLayer> layers;
  std::vector<std::unique_ptr<Blob>> blobs;
  std::vector<std::string> blob_names;
  std::map<std::string, int> blob_ids;
  std::vector<std::string> inputs, outputs;
};

// Builds and sets up the layers of `param`, in order. `param` must be filtered and must contain its
// Split layers.
NetGraph BuildNetGraph(const NetParameter& param, const NetContext& context,
                       const LayerRegistry& registry);

}  // namespace hearth::caffe
