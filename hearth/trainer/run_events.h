// What is told of a net while it trains, besides progress: events for whoever draws curves.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"

namespace hearth::trainer {

// The output blobs' values of the last pass by name; only the first ones of a large output.
nlohmann::json OutputsOf(caffe::Net& net);

// The event "net": its layers with those that each takes its bottoms from.
nlohmann::json NetEvent(const caffe::Net& net);

// The event "validation" of one of a solver's own test nets; `means` as Solver gives them.
nlohmann::json TestEvent(size_t index, int64_t iteration, caffe::Net& net,
                         const std::vector<double>& means);

// The event "histogram" of some values times `scale`, of which those that are no numbers are left
// out; null where none is left.
nlohmann::json HistogramEvent(std::string tag, const caffe::Tensor& values, double scale);

// Those of a net's weights and, where `gradient_weight` minibatches are behind its diffs, of the
// gradients: weights/LAYER/i and gradients/LAYER/i.
std::vector<nlohmann::json> HistogramEvents(caffe::Net& net, double gradient_weight);

}  // namespace hearth::trainer
