// Reads and writes the mean image of a data set: the file that compute_image_mean writes and
// mean_file names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

// The mean over a data set's images, for each channel and pixel.
struct MeanImage {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> values;  // in the order channels, rows, columns; empty if there is no mean

  bool empty() const { return values.empty(); }
  const float* Row(int64_t channel, int64_t row) const {
    return &values[(channel * height + row) * width];
  }
};

// Reads a binaryproto of any Caffe version. Throws kDataLoss unless it contains a single image.
MeanImage ReadMeanFile(const std::string& uri);
void WriteMeanFile(const MeanImage& mean, const std::string& uri);

}  // namespace hearth::caffe
