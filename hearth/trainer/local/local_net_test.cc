#include "hearth/trainer/local/local_net.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/trainer/testing/solver_testing.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::HasSubstr;

class LocalNetTest : public ::testing::Test {
 protected:
  // Options for a net of this text.
  LocalOptions NetOf(const std::string& text) {
    LocalOptions options;
    options.model = folder_.path("net.prototxt");
    options.threads = 1;
    std::ofstream(options.model) << text;
    return options;
  }

  const TestFolder folder_;
};

TEST_F(LocalNetTest, EachPassOfANetWithoutRowsCountsAsOne) {
  LocalNet local(NetOf(ConstantNet()), caffe::TEST, /*runs_backward=*/false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(local.Fetch(), 1);
  EXPECT_EQ(local.net().phase(), caffe::TEST);
}

TEST_F(LocalNetTest, IsFilteredByPhaseLevelAndStages) {
  std::string net = ConstantNet();
  net += R"(
    layer { name: "train" type: "Silence" bottom: "ip" include { phase: TRAIN } }
    layer { name: "deep" type: "Silence" bottom: "ip" include { min_level: 2 } }
    layer { name: "staged" type: "Silence" bottom: "ip" include { stage: "a" stage: "b" } })";
  LocalOptions options = NetOf(net);
  const auto has = [&](caffe::Phase phase, const char* layer) {
    LocalNet local(options, phase, /*runs_backward=*/false);
    for (const auto& each : local.net().layers()) {
      if (each.layer->name() == layer) return true;
    }
    return false;
  };
  EXPECT_TRUE(has(caffe::TRAIN, "train"));
  EXPECT_FALSE(has(caffe::TEST, "train"));
  EXPECT_FALSE(has(caffe::TEST, "deep"));
  EXPECT_FALSE(has(caffe::TEST, "staged"));
  options.level = 2;
  options.stages = {"a", "b"};
  EXPECT_TRUE(has(caffe::TEST, "deep"));
  EXPECT_TRUE(has(caffe::TEST, "staged"));
}

TEST_F(LocalNetTest, HasTheWeightsOfAllFilesInTheirOrder) {
  LocalOptions options = NetOf(ConstantNet());
  for (const float value : {1.0F, 2.0F}) {
    const auto solver = ConstantSolver();
    caffe::Tensor weights = solver->net().params().data();
    weights.fill_(value);
    options.weights.push_back(folder_.path(std::to_string(value)));
    caffe::WriteModel(solver->net().ToProto(), options.weights.back());
  }
  LocalNet local(options, caffe::TEST, /*runs_backward=*/false);
  EXPECT_EQ(local.net().layer("ip").blobs()[0]->data_ptr()[0], 2);
  options.weights = {folder_.path("missing")};
  EXPECT_THAT(Thrown([&] { LocalNet(options, caffe::TEST, false); }).message(),
              HasSubstr(folder_.path("missing")));
}

TEST_F(LocalNetTest, AMissingModelAndSourcesOfSparkAreNamed) {
  LocalOptions missing;
  missing.model = folder_.path("missing");
  missing.threads = 1;
  const Error error = Thrown([&] { LocalNet(missing, caffe::TEST, false); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr(folder_.path("missing")));
  const LocalOptions spark = NetOf(
      "layer { name: 'db' type: 'MemoryData' top: 'x' top: 'y' "
      "source_class: 'com.yahoo.ml.caffe.LMDB' memory_data_param { source: 'x' } }");
  EXPECT_EQ(CodeOf([&] { LocalNet(spark, caffe::TEST, false); }), ErrorCode::kUnimplemented);
}

TEST(ComputeThreadsTest, IsOnePerCoreUnlessChosen) {
  LocalOptions options;
  EXPECT_GE(ComputeThreads(options), 1);
  options.threads = 3;
  EXPECT_EQ(ComputeThreads(options), 3);
}

TEST(TemporaryFolderTest, IsTheEnvironmentsUnlessEmpty) {
  const char* const value = std::getenv("TMPDIR");
  const std::optional<std::string> before =
      value == nullptr ? std::nullopt : std::optional<std::string>(value);
  setenv("TMPDIR", "/scratch", 1);
  EXPECT_EQ(TemporaryFolder(), "/scratch");
  setenv("TMPDIR", "", 1);
  EXPECT_EQ(TemporaryFolder(), "/tmp");
  unsetenv("TMPDIR");
  EXPECT_EQ(TemporaryFolder(), "/tmp");
  if (before) setenv("TMPDIR", before->c_str(), 1);
}

}  // namespace
}  // namespace hearth::trainer
