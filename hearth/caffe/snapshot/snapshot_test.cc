#include "hearth/caffe/snapshot/snapshot.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SnapshotName, EqualsCaffes) {
  EXPECT_EQ(SnapshotName("a/b", 20, "caffemodel"), "a/b_iter_20.caffemodel");
}

TEST(ReadState, RejectsAModel) {
  const std::string path = TestFolder() + "snapshot_test.caffemodel";
  NetParameter model;
  model.set_name("net");
  WriteModel(model, path);
  EXPECT_EQ(ReadModel(path).name(), "net");
  EXPECT_THAT([&] { ReadState(path); },
              ThrowsMessage<Error>(HasSubstr("is not a readable solver state")));
  std::filesystem::remove(path);
}

TEST(ReadState, RejectsAModelInHdf5) {
  const std::string path = TestFolder() + "snapshot_test.caffemodel.h5";
  NetParameter model;
  model.add_layer()->set_name("layer");
  WriteModel(model, path);
  EXPECT_EQ(ReadModel(path).layer().size(), 1);
  EXPECT_THAT([&] { ReadState(path); },
              ThrowsMessage<Error>(HasSubstr("is not a readable solver state")));
  std::filesystem::remove(path);
}

TEST(ReadModel, DetectsHdf5ByContent) {
  const std::string path = TestFolder() + "snapshot_test.h5";
  const std::string other_name = TestFolder() + "snapshot_test.weights";
  NetParameter model;
  model.add_layer()->set_name("layer");
  WriteModel(model, path);
  std::filesystem::rename(path, other_name);
  EXPECT_EQ(ReadModel(other_name).layer_size(), 1);
  std::filesystem::remove(other_name);
}

TEST(WriteState, RejectsUnsupportedSchemes) {
  EXPECT_THAT([] { WriteState({}, "hdfs://host/a"); }, ThrowsMessage<Error>(HasSubstr("hdfs:")));
}

}  // namespace
}  // namespace hearth::caffe
