// Classifies an image with a trained net, as Caffe's cpp_classification does.
#pragma once

#include <string>
#include <vector>

#include "hearth/caffe/tensor/compute_device.h"

namespace hearth::caffe {

// Options of Classify.
struct ClassifyOptions {
  std::string net;      // deploy prototxt with one input and one output
  std::string weights;  // trained model
  std::string mean;     // binaryproto; the mean of each channel is subtracted
  std::string labels;   // text file with one line per class
  std::string image;
  ComputeDevice device;
};

// A class and its score.
struct Prediction {
  std::string label;
  float confidence = 0;
};

// Returns the five most likely classes (or all, if there are fewer), most likely first. Throws
// kInvalidArgument if net, mean and labels do not match.
std::vector<Prediction> Classify(const ClassifyOptions& options);

}  // namespace hearth::caffe
