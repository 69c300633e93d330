// Events about a net in training, besides progress, for programs that draw curves.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"

namespace hearth::trainer {

// The output blobs' values of the last pass by name; only the first ones of a large output.
nlohmann::json OutputsOf(caffe::Net& net);

// The event "net": its layers, each with the layers that produce its bottoms.
nlohmann::json NetEvent(const caffe::Net& net);

// The event "validation" of one of a solver's test nets; `means` as returned by Solver.
nlohmann::json TestEvent(size_t index, int64_t iteration, caffe::Net& net,
                         const std::vector<double>& means);

// The event "histogram" of some values times `scale`. Values that are not finite are left out; null
// if none remain.
nlohmann::json HistogramEvent(std::string tag, const caffe::Tensor& values, double scale);

// Histograms of a net's weights and, if its diffs hold `gradient_weight` > 0 minibatches, of the
// gradients: weights/LAYER/i and gradients/LAYER/i.
std::vector<nlohmann::json> HistogramEvents(caffe::Net& net, double gradient_weight);

}  // namespace hearth::trainer
