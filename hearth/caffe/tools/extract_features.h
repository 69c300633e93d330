// Runs a trained net over its own data and stores what some of its blobs hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/net/compute_device.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

struct FeatureOptions {
  std::string weights;  // trained model
  std::string net;      // prototxt; its TEST net reads the data itself
  std::vector<std::string> blobs;
  std::vector<std::string> databases;  // to be made, one for each blob
  int64_t batches = 0;
  DataParameter::DB backend = DataParameter::LMDB;
  int threads = 1;  // that decode pictures
  ComputeDevice device;
};

// One Datum with floats for each row of a blob, under its number in ten digits. Returns the rows.
int64_t ExtractFeatures(const FeatureOptions& options);

}  // namespace hearth::caffe
