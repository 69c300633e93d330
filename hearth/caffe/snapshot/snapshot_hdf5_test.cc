#include "hearth/caffe/snapshot/snapshot_hdf5.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/data/handle.h"
#include "hearth/caffe/data/hdf5_file.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kGolden = std::string(HEARTH_TEST_DATA) + "/golden/files/";

class SnapshotHdf5 : public testing::Test {
 protected:
  ~SnapshotHdf5() override { std::filesystem::remove(path_); }

  static void AddBlob(std::vector<float> values, LayerParameter* layer) {
    BlobProto* blob = layer->add_blobs();
    blob->mutable_shape()->add_dim(static_cast<int64_t>(values.size()));
    *blob->mutable_data() = std::move(values);
  }

  // Two layers, "one" and "two", that share their first parameter.
  static NetParameter SharingModel() {
    NetParameter model;
    for (const char* name : {"one", "two"}) {
      LayerParameter* layer = model.add_layer();
      layer->set_name(name);
      layer->add_param()->set_name("shared");
      AddBlob({1, 2}, layer);
      AddBlob({3}, layer);
    }
    return model;
  }

  const std::string path_ = TestFolder() + "snapshot_hdf5_test.h5";
};

TEST_F(SnapshotHdf5, ReadsTheLayersThatCaffeWrote) {
  const NetParameter model = ReadModelHdf5(kGolden + "net_with_diff.caffemodel.h5");
  std::vector<std::string> names;
  for (const LayerParameter& layer : model.layer()) names.push_back(layer.name());
  EXPECT_THAT(names, ElementsAre("bn1", "conv1", "in_l", "in_x", "ip1", "loss", "pool1", "relu1",
                                 "scale1"));
  const BlobProto& weights = model.layer()[1].blobs()[0];
  EXPECT_THAT(weights.shape().dim(), ElementsAre(3, 2, 3, 3));
  EXPECT_EQ(weights.data().size(), 54);
  EXPECT_EQ(weights.diff().size(), 54);
}

TEST_F(SnapshotHdf5, KeepsLayerNamesWithSlashes) {
  NetParameter model;
  for (const char* name : {"a/b", "a", "a/c/d"}) {
    LayerParameter* layer = model.add_layer();
    layer->set_name(name);
    AddBlob({1, 2}, layer);
  }
  model.add_layer()->set_name("e/relu");
  WriteModelHdf5(model, path_);
  const NetParameter read = ReadModelHdf5(path_);
  std::vector<std::string> names;
  for (const LayerParameter& layer : read.layer()) {
    names.push_back(layer.name());
    EXPECT_EQ(layer.blobs().size(), layer.name() == "e/relu" ? 0 : 1) << layer.name();
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("a", "a/b", "a/c/d", "e/relu"));
}

TEST_F(SnapshotHdf5, StoresASharedParameterOnceAtItsOwner) {
  WriteModelHdf5(SharingModel(), path_);
  EXPECT_TRUE(Hdf5File::Open(path_).Has("/data/one/0"));
  EXPECT_FALSE(Hdf5File::Open(path_).Has("/data/two/0"));
  const NetParameter read = ReadModelHdf5(path_);
  EXPECT_THAT(read.layer()[1].blobs()[0].data(), ElementsAre());
  EXPECT_THAT(read.layer()[1].blobs()[1].data(), ElementsAre(3));
}

TEST_F(SnapshotHdf5, StoresTheDiffOfASharedParameterAtAllLayers) {
  NetParameter model = SharingModel();
  for (LayerParameter& layer : *model.mutable_layer()) {
    *(*layer.mutable_blobs())[0].mutable_diff() = {3, 4};
  }
  WriteModelHdf5(model, path_);
  const Hdf5File file = Hdf5File::Open(path_);
  EXPECT_FALSE(file.Has("/data/two/0"));
  EXPECT_THAT(file.ReadFloats("/diff/one/0"), ElementsAre(3, 4));
  EXPECT_THAT(file.ReadFloats("/diff/two/0"), ElementsAre(3, 4));
}

// Writes a model whose layer "a" has one parameter. `links` are pairs of a link's path and its
// target.
void WriteLinkedModel(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& links) {
  {
    Hdf5File file = Hdf5File::Create(path);
    file.MakeGroup("/data/a");
    file.MakeGroup("/history");
    const float values[] = {1, 2};
    file.WriteFloats("/data/a/0", {2}, values);
    file.WriteFloats("/history/0", {2}, values);
    file.WriteInt("/iter", 1);
    file.WriteInt("/current_step", 0);
  }
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  for (const auto& [from, to] : links) {
    ASSERT_GE(
        H5Lcreate_hard(file.get(), to.c_str(), file.get(), from.c_str(), H5P_DEFAULT, H5P_DEFAULT),
        0);
  }
}

TEST_F(SnapshotHdf5, RejectsGroupsThatContainThemselves) {
  for (const char* to : {"/data", "/data/a", "/"}) {
    WriteLinkedModel(path_, {{"/data/a/b", to}});
    EXPECT_THAT([&] { ReadModelHdf5(path_); },
                ThrowsMessage<Error>(HasSubstr("also has another name")))
        << to;
  }
}

// The 40 groups each contain two links to the next group, so there are 2^40 paths.
TEST_F(SnapshotHdf5, RejectsGroupsWithSeveralPaths) {
  {
    Hdf5File file = Hdf5File::Create(path_);
    for (int i = 0; i < 40; ++i) file.MakeGroup("/groups/" + std::to_string(i));
    file.MakeGroup("/data");
  }
  {
    const Hdf5Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    std::string from = "/data";
    for (int i = 0; i < 40; ++i) {
      const std::string to = "/groups/" + std::to_string(i);
      for (const char* name : {"/x", "/y"}) {
        ASSERT_GE(H5Lcreate_hard(file.get(), to.c_str(), file.get(), (from + name).c_str(),
                                 H5P_DEFAULT, H5P_DEFAULT),
                  0);
      }
      from = to;
    }
  }
  EXPECT_THAT([&] { ReadModelHdf5(path_); },
              ThrowsMessage<Error>(HasSubstr("also has another name")));
}

TEST_F(SnapshotHdf5, RejectsLinkedDatasets) {
  WriteLinkedModel(path_, {{"/data/a/1", "/data/a/0"}, {"/history/1", "/history/0"}});
  EXPECT_THAT([&] { ReadModelHdf5(path_); },
              ThrowsMessage<Error>(HasSubstr("/data/a/1 also has another name")));
  EXPECT_THAT([&] { ReadStateHdf5(path_); },
              ThrowsMessage<Error>(HasSubstr("/history/1 also has another name")));
}

TEST_F(SnapshotHdf5, RejectsLinksToOtherFiles) {
  WriteLinkedModel(path_, {});
  {
    const Hdf5Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    ASSERT_GE(
        H5Lcreate_external("/dev/zero", "/x", file.get(), "/data/a/1", H5P_DEFAULT, H5P_DEFAULT),
        0);
  }
  EXPECT_THAT([&] { ReadModelHdf5(path_); },
              ThrowsMessage<Error>(HasSubstr("1 in /data/a is a link into another file")));
}

TEST_F(SnapshotHdf5, RejectsDeepNesting) {
  {
    Hdf5File file = Hdf5File::Create(path_);
    std::string group = "/data";
    for (int i = 0; i < 300; ++i) group += "/g";
    file.MakeGroup(group);
  }
  EXPECT_THAT([&] { ReadModelHdf5(path_); },
              ThrowsMessage<Error>(HasSubstr("groups are nested deeper than 64, at /data/g/g")));
}

TEST_F(SnapshotHdf5, RoundTripsAState) {
  SolverState state = ReadStateHdf5(kGolden + "net_iter_5.solverstate.h5");
  EXPECT_EQ(state.iter(), 5);
  EXPECT_EQ(state.current_step(), 1);
  EXPECT_EQ(state.learned_net(), "net_iter_5.caffemodel.h5");
  EXPECT_EQ(state.history().size(), 9);
  WriteStateHdf5(state, path_);
  const SolverState read = ReadStateHdf5(path_);
  EXPECT_EQ(read.learned_net(), state.learned_net());
  EXPECT_EQ(read.history()[8].data(), state.history()[8].data());
  EXPECT_EQ(read.history()[0].shape().dim(), state.history()[0].shape().dim());
}

TEST_F(SnapshotHdf5, DistinguishesAModelFromAState) {
  EXPECT_THAT([] { ReadStateHdf5(kGolden + "net.caffemodel.h5"); },
              ThrowsMessage<Error>(HasSubstr("no dataset /iter")));
  EXPECT_THAT([] { ReadModelHdf5(kGolden + "net_iter_5.solverstate.h5"); },
              ThrowsMessage<Error>(HasSubstr("no group /data")));
}

}  // namespace
}  // namespace hearth::caffe
