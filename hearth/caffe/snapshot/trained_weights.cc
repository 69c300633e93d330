#include "hearth/caffe/snapshot/trained_weights.h"

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/snapshot/snapshot.h"

namespace hearth::caffe {

void LoadTrainedWeights(const std::string& uri, Net* net) {
  const NetParameter model = ReadModel(uri);
  try {
    net->CopyTrainedLayersFrom(model);
  } catch (const LayerError& error) {
    throw LayerError(error.code(), "weights " + uri, error.layer(), error);
  } catch (const Error& error) {
    throw Error(error.code(), "weights " + uri, error);
  }
}

}  // namespace hearth::caffe
