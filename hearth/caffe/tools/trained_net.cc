#include "hearth/caffe/tools/trained_net.h"

#include "hearth/caffe/snapshot/trained_weights.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {

std::unique_ptr<Net> TrainedTestNet(const std::string& net, const std::string& weights,
                                    NetContext context) {
  context.phase = TEST;
  // The seed is fixed, so a tool computes the same results in every run.
  context.random = std::make_shared<Random>(0);
  auto trained = std::make_unique<Net>(ReadNet(net), context);
  LoadTrainedWeights(weights, trained.get());
  return trained;
}

}  // namespace hearth::caffe
