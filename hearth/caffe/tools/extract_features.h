// Runs a trained net over its own data and stores the values of some of its blobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/net/net_context.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Options of ExtractFeatures.
struct FeatureOptions {
  std::string weights;  // trained model
  std::string net;      // prototxt; its TEST net reads the data
  std::vector<std::string> blobs;
  std::vector<std::string> databases;  // to be created, one per blob
  int64_t batches = 0;
  DataParameter::DB backend = DataParameter::LMDB;
  int threads = 1;  // for decoding images
  ComputeDevice device;
  Precision precision = Precision::kFloat32;
};

// Stores one Datum of floats per row of a blob; keys are row numbers of ten digits. Returns the
// rows.
int64_t ExtractFeatures(const FeatureOptions& options);

}  // namespace hearth::caffe
