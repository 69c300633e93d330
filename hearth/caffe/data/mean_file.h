// Reads and writes the mean image of a data set, as compute_image_mean writes it for mean_file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

// The mean of each value of a data set's images.
struct MeanImage {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> values;  // channels, rows, columns; empty without a mean

  bool empty() const { return values.empty(); }
  const float* Row(int64_t channel, int64_t row) const {
    return &values[(channel * height + row) * width];
  }
};

// Reads a binaryproto of any version. Throws kDataLoss unless it holds a single image.
MeanImage ReadMeanFile(const std::string& uri);
void WriteMeanFile(const MeanImage& mean, const std::string& uri);

}  // namespace hearth::caffe
