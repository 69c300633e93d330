#include "hearth/caffe/solver/snapshot_writer.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/snapshot/snapshot.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class SnapshotWriterTest : public testing::Test {
 protected:
  SnapshotWriterTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~SnapshotWriterTest() override { fs::remove_all(folder_); }

  SnapshotWriter Writer(const std::string& solver) {
    param_ = ParseSolver("base_lr: 0.1 lr_policy: 'fixed' " + solver, "solver");
    return {param_, folder_ + "/lenet_solver.prototxt"};
  }
  SnapshotWriter WriterTo(const std::string& prefix, const std::string& more = "") {
    return Writer("snapshot_prefix: '" + folder_ + "/" + prefix + "' " + more);
  }
  SnapshotFiles Write(const SnapshotWriter& writer) {
    TrainingPosition position;
    position.iteration = 7;
    const auto state = [] {
      SolverState made;
      made.set_iter(7);
      return made;
    };
    return writer.Write(net_, state, position);
  }
  std::vector<std::string> Names(const std::string& folder = "") const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ + "/" + folder)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::string folder_ = TestFolder() + "snapshot_writer_test";
  SolverParameter param_;
  Net net_{ParseNet(RowsNet(4, 10), "net"), ContextOf(TRAIN), TestRegistry()};
};

TEST_F(SnapshotWriterTest, ThePrefixIsTheSolversNameUnlessOneIsSet) {
  EXPECT_EQ(Writer("").prefix(), folder_ + "/lenet_solver");
  EXPECT_EQ(WriterTo("a/b").prefix(), folder_ + "/a/b");
  fs::create_directory(folder_ + "/snapshots");
  EXPECT_EQ(WriterTo("snapshots").prefix(), folder_ + "/snapshots/lenet_solver")
      << "inside an existing folder";
}

TEST_F(SnapshotWriterTest, WritesModelStateAndSealIntoAFolderThatItCreates) {
  const SnapshotFiles files = Write(WriterTo("new/lenet"));
  EXPECT_EQ(files.model, folder_ + "/new/lenet_iter_7.caffemodel");
  EXPECT_EQ(files.state, folder_ + "/new/lenet_iter_7.solverstate");
  EXPECT_THAT(Names("new"),
              UnorderedElementsAre("lenet_iter_7.caffemodel", "lenet_iter_7.solverstate",
                                   "lenet_iter_7.hearth.json"));
  EXPECT_EQ(ReadState(files.state).learned_net(), files.model);
  EXPECT_EQ(ReadState(files.state).iter(), 7);
}

TEST_F(SnapshotWriterTest, Hdf5FilesHaveItsEnding) {
  const SnapshotFiles files = Write(WriterTo("lenet", "snapshot_format: HDF5"));
  EXPECT_EQ(files.model, folder_ + "/lenet_iter_7.caffemodel.h5");
  EXPECT_EQ(ReadState(files.state).learned_net(), files.model);
}

TEST_F(SnapshotWriterTest, LeavesNothingOfAFailedSnapshot) {
  const SnapshotWriter writer = WriterTo("lenet");
  const auto no_state = []() -> SolverState { Throw(ErrorCode::kResourceExhausted, "no memory"); };
  EXPECT_EQ(CodeOf([&] { writer.Write(net_, no_state, {}); }), ErrorCode::kResourceExhausted);
  EXPECT_THAT(Names(), UnorderedElementsAre());
  fs::create_directories(folder_ + "/lenet_iter_7.hearth.json/x");  // the seal cannot be written
  EXPECT_THROW(Write(writer), Error);
  EXPECT_THAT(Names(), UnorderedElementsAre("lenet_iter_7.hearth.json"));
}

TEST_F(SnapshotWriterTest, AnUnwritablePrefixIsFoundBeforeTheTraining) {
  EXPECT_NO_THROW(WriterTo("lenet", "snapshot: 10").Check());
  EXPECT_THAT(Names(), UnorderedElementsAre()) << "the probe leaves nothing";
  const Error error = Thrown([&] { WriterTo("missing/lenet", "snapshot: 10").Check(); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr(folder_ + "/missing/lenet_iter_*; create the folder"));
  EXPECT_NO_THROW(WriterTo("missing/lenet").Check()) << "no snapshot is due";
}

TEST_F(SnapshotWriterTest, AnEmptyPrefixIsAnError) {
  const Error error = Thrown([&] { Write(Writer("snapshot_prefix: ''")); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("no snapshot_prefix"));
}

}  // namespace
}  // namespace hearth::caffe
