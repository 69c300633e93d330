// Runs a trained net with its own data layers and stores the values of some of its blobs.
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
  std::string net;      // prototxt whose TEST net reads the data
  std::vector<std::string> blobs;
  std::vector<std::string> databases;  // one per blob; created by the tool
  int64_t batches = 0;
  DataParameter::DB backend = DataParameter::LMDB;
  int threads = 1;  // threads that decode images
  ComputeDevice device;
  Precision precision = Precision::kFloat32;
};

// Stores each row of a blob as a Datum of floats. Keys are row numbers with ten digits. Returns the
// number of rows.
int64_t ExtractFeatures(const FeatureOptions& options);

}  // namespace hearth::caffe
