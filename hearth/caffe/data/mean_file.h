// The mean picture of a data set, as compute_image_mean writes it and mean_file names it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

struct MeanPicture {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> values;  // channels, rows, columns; none where there is no mean

  bool empty() const { return values.empty(); }
  const float* Row(int64_t channel, int64_t row) const {
    return &values[(channel * height + row) * width];
  }
};

// A binaryproto of any age. Throws kDataLoss for one that holds no single picture.
MeanPicture ReadMeanFile(const std::string& uri);
void WriteMeanFile(const MeanPicture& mean, const std::string& uri);

}  // namespace hearth::caffe
