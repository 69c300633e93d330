// Events about the net in training, other than progress, for programs that draw curves.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"

namespace hearth::trainer {

// The output blobs' values of the last pass, by name. A large output is truncated.
nlohmann::json OutputsOf(caffe::Net& net);

// The event "net": the net's layers, each with the layers that produce its bottoms.
nlohmann::json NetEvent(const caffe::Net& net);

// The event "validation" of one of a solver's test nets; `means` as returned by Solver.
nlohmann::json TestEvent(size_t index, int64_t iteration, caffe::Net& net,
                         const std::vector<double>& means);

// The event "histogram" of `values` times `scale`. Values that are not finite are omitted. Returns
// null if none remain.
nlohmann::json HistogramEvent(std::string tag, const caffe::Tensor& values, double scale);

// Histograms of a net's weights (weights/LAYER/i) and gradients (gradients/LAYER/i). The net's
// diffs are the sum over `gradient_weight` minibatches; if that is 0, there are no gradients.
std::vector<nlohmann::json> HistogramEvents(caffe::Net& net, double gradient_weight);

}  // namespace hearth::trainer
