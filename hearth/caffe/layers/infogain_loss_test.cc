#include <gmock/gmock.h>

#include <cmath>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/tensor/blob_proto.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

// A matrix in row order that is not symmetric and whose row sums differ.
const Array kMatrix({3, 3}, {0.9f, 0.1f, -0.2f, 0.3f, 0.8f, 0, 0.5f, 0.25f, 1.5f});

struct Infogain {
  int64_t inner = 1;
  std::optional<int> ignored = {};
  bool over_all = false;  // the divisor includes ignored labels
  bool second_top = false;

  Arrays operator()(const Arrays& bottoms, const Arrays&) const {
    const Array& matrix = bottoms.size() > 2 ? bottoms[2] : kMatrix;
    Array p = bottoms[0];
    double loss = 0;
    int64_t counted = 0;
    for (int64_t i = 0; i < p.shape[0] * inner; ++i) {
      float* first = &p.values[i / inner * 3 * inner + i % inner];
      double sum = 0;
      for (int64_t c = 0; c < 3; ++c) sum += std::exp(first[c * inner]);
      const int label = static_cast<int>(bottoms[1].values[i]);
      for (int64_t c = 0; c < 3; ++c) {
        float& value = first[c * inner];
        value = static_cast<float>(std::exp(value) / sum);
        if (label != ignored) loss -= matrix.values[int64_t{3} * label + c] * std::log(value);
      }
      counted += over_all || label != ignored;
    }
    const Array top({}, {static_cast<float>(loss / std::max<int64_t>(1, counted))});
    return second_top ? Arrays{top, p} : Arrays{top};
  }
};

LayerCase InfogainRow(std::string name, const std::string& param, Infogain loss) {
  const Shape scores = loss.inner == 1 ? Shape{5, 3} : Shape{2, 3, 2, 2};
  const Shape labels = loss.inner == 1 ? Shape{5} : Shape{2, 2, 2};
  LayerCase row{std::move(name),
                "type: 'InfogainLoss' " + param,
                {{scores}, {labels, 0, 0, 3}, {{3, 3}, -0.5f, 1}},
                loss};
  row.without_gradient = {1, 2};
  row.fixed_rows = true;  // the matrix has one row per class
  return row;
}

// Writes the matrix to a file and returns the parameters of a layer that reads it.
std::string WithFile() {
  const std::string path = TestFolder() + "infogain_test.binaryproto";
  Blob blob(kMatrix.shape);
  SetValues(kMatrix, blob.data());
  BlobProto proto;
  WriteBlob(blob, /*write_diff=*/false, &proto);
  storage::AtomicFile file(path);
  file.Append(WireBytes(proto));
  file.Commit();
  return "infogain_loss_param { source: '" + path + "' }";
}

}  // namespace

std::vector<LayerCase> InfogainLossCases() {
  LayerCase file = InfogainRow("infogain_file", WithFile(), {});
  file.bottoms.pop_back();
  file.without_gradient = {1};
  file.fixed_rows = false;
  LayerCase two_tops = InfogainRow("infogain_two_tops", "", {.second_top = true});
  two_tops.tops = 2;
  two_tops.tops_without_gradient = {1};
  return {
      InfogainRow("infogain", "", {}),
      InfogainRow("infogain_spatial_ignore", "loss_param { ignore_label: 1 }",
                  {.inner = 4, .ignored = 1}),
      InfogainRow("infogain_full", "loss_param { ignore_label: 0 normalization: FULL }",
                  {.inner = 4, .ignored = 0, .over_all = true}),
      two_tops,
      file,
  };
}
const bool kInfogainLossCases = AddLayerCases(InfogainLossCases);

namespace {

std::string InfogainError(const std::string& param, const Shape& matrix) {
  LayerCase row = InfogainRow("case", param, {});
  row.bottoms.pop_back();
  if (!matrix.empty()) row.bottoms.push_back({matrix});
  try {
    LayerRun(row).Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(InfogainLoss, NamesAMissingOrMismatchedMatrix) {
  EXPECT_THAT(InfogainError("", {}), HasSubstr("needs its matrix"));
  EXPECT_THAT(InfogainError("infogain_loss_param { source: '/no/such/file' }", {}),
              HasSubstr("/no/such/file"));
  EXPECT_THAT(InfogainError("", {2, 3}),
              HasSubstr("the infogain matrix has shape 2 3 (6), but 3 classes need 9 values"));
}

TEST(InfogainLoss, RejectsAGradientForLabelsAndMatrix) {
  const LayerCase row = InfogainRow("case", "", {});
  LayerRun run(row);
  run.Forward();
  EXPECT_THROW(run.layer().Backward(run.tops(), {true, true, false}, run.bottoms()), Error);
  EXPECT_THROW(run.layer().Backward(run.tops(), {true, false, true}, run.bottoms()), Error);
  EXPECT_TRUE(run.layer().traits().AllowsForceBackward(0));
  EXPECT_FALSE(run.layer().traits().AllowsForceBackward(2));
}

}  // namespace
}  // namespace hearth::caffe
