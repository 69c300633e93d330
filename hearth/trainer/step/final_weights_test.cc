#include "hearth/trainer/step/final_weights.h"

#include <gmock/gmock.h>

#include <cmath>
#include <mutex>
#include <set>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/trainer/testing/solver_testing.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckEqualWeightsTest, ReturnsTheSameHashOnAllRanks) {
  std::mutex mutex;
  std::set<std::string> hashes;
  RunGroupThreads(3, [&](collective::Group& group) {
    const auto solver = ConstantSolver();
    const std::string hash = CheckEqualWeights(group, *solver);
    const std::lock_guard lock(mutex);
    hashes.insert(hash);
  });
  ASSERT_EQ(hashes.size(), 1U);
  EXPECT_EQ(hashes.begin()->size(), 64U);
}

// Changes a single bit of one rank's weights, which has no other visible effect.
TEST(CheckEqualWeightsTest, FailsOnEveryRankIfOneDiffers) {
  for (const int other : {0, 2}) {
    RunGroupThreads(3, [&](collective::Group& group) {
      const auto solver = ConstantSolver();
      float* const weight = solver->net().layer("ip").blobs()[0]->data_ptr();
      if (group.rank() == other) *weight = std::nextafter(*weight, 10.0F);
      const Error error = Thrown([&] { CheckEqualWeights(group, *solver); });
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_THAT(error.message(), AllOf(HasSubstr("iteration 0"), HasSubstr("weights differ")));
    });
  }
}

TEST(WriteFinalModelTest, TheFormatIsThatOfTheSnapshots) {
  const TestFolder folder;
  const auto binary = ConstantSolver(), hdf5 = ConstantSolver("snapshot_format: HDF5");
  const std::string plain = folder.path("new/final.caffemodel");  // the folder does not exist yet
  EXPECT_EQ(WriteFinalModel(plain, *binary), plain);
  EXPECT_EQ(WriteFinalModel(plain + ".h5", *binary), plain) << "the name must not lie";
  EXPECT_EQ(WriteFinalModel(plain, *hdf5), plain + ".h5");
  EXPECT_EQ(WriteFinalModel(plain + ".h5", *hdf5), plain + ".h5");
  for (const std::string& file : {plain, plain + ".h5"}) {
    const auto read = ConstantSolver("random_seed: 8");
    read->LoadWeights(file);
    EXPECT_EQ(read->net().layer("ip").blobs()[0]->data_ptr()[0],
              binary->net().layer("ip").blobs()[0]->data_ptr()[0]);
  }
}

}  // namespace
}  // namespace hearth::trainer
