// Says what a trained net finds in one picture, as Caffe's cpp_classification does.
#pragma once

#include <string>
#include <vector>

#include "hearth/caffe/net/compute_device.h"

namespace hearth::caffe {

struct ClassifyOptions {
  std::string net;      // deploy prototxt: one input, one output
  std::string weights;  // trained model
  std::string mean;     // binaryproto; each channel's mean is subtracted
  std::string labels;   // a line for each class
  std::string image;
  ComputeDevice device;
};

struct Prediction {
  std::string label;
  float confidence = 0;
};

// The five likeliest classes (all, where there are fewer), likeliest first. Throws kInvalidArgument
// where net, mean and labels do not fit together.
std::vector<Prediction> Classify(const ClassifyOptions& options);

}  // namespace hearth::caffe
