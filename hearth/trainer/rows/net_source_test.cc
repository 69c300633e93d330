#include "hearth/trainer/rows/net_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/dataset/spool/memory_source.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::HasSubstr;

Job TinyJob(const std::string& solver) {
  Job job;
  job.solver = {"some/where/tiny_solver.prototxt", TestSolver(10, solver)};
  job.net = {"tiny.prototxt", TestNet(4)};
  return job;
}

TEST(NetSourceTest, TheJobsNetReplacesTheSolversFile) {
  const caffe::SolverParameter solver = SolverOf(TinyJob(""));
  EXPECT_FALSE(solver.has_net());
  EXPECT_EQ(solver.net_param().name(), "tiny");
}

TEST(NetSourceTest, CommandLineWeightsReplaceTheSolvers) {
  Job job = TinyJob("weights: \"own.caffemodel\"");
  EXPECT_EQ(SolverOf(job).weights_size(), 1);
  job.snapshot = "x.solverstate";
  EXPECT_EQ(SolverOf(job).weights_size(), 0);
  job.snapshot = "";
  job.weights = {"other.caffemodel"};
  EXPECT_EQ(SolverOf(job).weights_size(), 0);
}

TEST(NetSourceTest, SnapshotsAreWrittenToTheModelsFolderUnlessThePrefixIsAbsolute) {
  TestFolder folder;
  Job job = TinyJob("snapshot_prefix: \"deep/lenet\"");
  job.model = "file:" + folder.path("models/final.caffemodel");
  EXPECT_EQ(SolverOf(job).snapshot_prefix(), folder.path("models/deep/lenet"));
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("models/deep")));
  job.solver.text = TestSolver(10, "snapshot_prefix: \"" + folder.path("own/p") + "\"");
  EXPECT_EQ(SolverOf(job).snapshot_prefix(), folder.path("own/p"));
}

TEST(NetSourceTest, AMeanFileMayBeInTheFolderOfTheNetsFile) {
  TestFolder folder;
  std::ofstream(folder.path("mean.binaryproto")) << "x";
  const auto mean_of = [&](const std::string& named) {
    Job job;
    job.net = {folder.path("net.prototxt"),
               "layer { name: 'd' type: 'MemoryData' top: 'x' top: 'y' transform_param { mean_file:"
               " '" +
                   named + "' } }"};
    return TestNetOf(job).layer(0).transform_param().mean_file();
  };
  EXPECT_EQ(mean_of("mean.binaryproto"), folder.path("mean.binaryproto"));
  EXPECT_EQ(mean_of("gone.binaryproto"), "gone.binaryproto");
  EXPECT_EQ(mean_of("/a/mean.binaryproto"), "/a/mean.binaryproto");
  EXPECT_EQ(mean_of("hdfs://host/mean.binaryproto"), "hdfs://host/mean.binaryproto");
}

TEST(NetSourceTest, WithoutValidationRowsTheSolverDoesNotTest) {
  Job job = TinyJob("test_iter: 5 test_interval: 10");
  EXPECT_EQ(SolverOf(job).test_interval(), 0);
  EXPECT_EQ(SolverOf(job).test_iter_size(), 0);
  job.validate = true;
  EXPECT_EQ(SolverOf(job).test_interval(), 10);
  EXPECT_FALSE(SolverOf(job).test_initialization());
  job.local = true;
  EXPECT_TRUE(SolverOf(job).test_initialization());
}

TEST(NetSourceTest, TheTestNetHasTheTestState) {
  Job job = TinyJob("test_iter: 5 test_interval: 10 test_state { stage: \"deploy\" }");
  job.validate = true;
  const caffe::NetParameter net = TestNetOf(job);
  EXPECT_EQ(net.state().phase(), caffe::TEST);
  EXPECT_EQ(net.state().stage(0), "deploy");
}

TEST(NetSourceTest, RejectsASecondInputLayer) {
  auto source = std::make_shared<dataset::MemorySource>(
      std::vector<std::shared_ptr<const batch::BatchView>>{});
  caffe::LayerParameter first, second;
  first.set_name("data");
  second.set_name("more");
  const auto open = OpenOnce(source, "train");
  EXPECT_EQ(open(first), source);
  try {
    open(second);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("\"data\" and \"more\""));
  }
}

TEST(NetSourceTest, AnInputLayerWithoutAStreamIsAnErrorNamingBoth) {
  caffe::LayerParameter layer;
  layer.set_name("data");
  try {
    OpenOnce(nullptr, "train")(layer);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("layer \"data\""));
    EXPECT_THAT(error.message(), HasSubstr("no \"train\" stream"));
  }
}

}  // namespace
}  // namespace hearth::trainer
