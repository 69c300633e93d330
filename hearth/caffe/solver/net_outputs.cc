#include "hearth/caffe/solver/net_outputs.h"

#include <string>

#include "hearth/base/log.h"

namespace hearth::caffe {
namespace {

// Returns a text such as " (* 0.5 = 0.25 loss)" for an output that is part of the loss.
std::string LossPart(float weight, double value) {
  return weight == 0 ? "" : fmt::format(" (* {:g} = {:g} loss)", weight, weight * value);
}

}  // namespace

void LogOutputs(const char* kind, Net& net, const std::vector<double>& values) {
  size_t index = 0;
  for (const std::string& name : net.output_names()) {
    const float weight = net.loss_weight(name);
    for (int64_t i = 0; i < net.blob(name).count() && index < values.size(); ++i, ++index) {
      log::Info("    {} net output #{}: {} = {:g}{}", kind, index, name, values[index],
                LossPart(weight, values[index]));
    }
  }
}

void AddOutputs(Net& net, double weight, std::vector<double>* sums) {
  size_t index = 0;
  for (const std::string& name : net.output_names()) {
    Blob& blob = net.blob(name);
    const float* data = blob.data_ptr();
    if (sums->size() < index + static_cast<size_t>(blob.count())) {
      sums->resize(index + static_cast<size_t>(blob.count()), 0);
    }
    for (int64_t i = 0; i < blob.count(); ++i, ++index) (*sums)[index] += weight * data[i];
  }
}

}  // namespace hearth::caffe
