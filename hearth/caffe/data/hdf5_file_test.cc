#include "hearth/caffe/data/hdf5_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/data/handle.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Hdf5FileTest : public testing::Test {
 protected:
  ~Hdf5FileTest() override { fs::remove(path_); }

  const std::string path_ = TestFolder() + "hdf5_file_test.h5";
};

TEST_F(Hdf5FileTest, RoundTrips) {
  Hdf5File file = Hdf5File::InMemory();
  file.MakeGroup("/group/inside");
  const float values[] = {1, 2, 3, 4, 5, 6};
  file.WriteFloats("/group/x", {2, 3}, values);
  file.WriteInt("/number", -7);
  file.WriteText("/text", "some words");
  file.Save(path_);

  const Hdf5File read = Hdf5File::Open(path_);
  EXPECT_THAT(read.Children("/"), ElementsAre("group", "number", "text"));
  EXPECT_TRUE(read.IsGroup("/group/inside"));
  EXPECT_FALSE(read.IsGroup("/group/x"));
  EXPECT_THAT(read.ShapeOf("/group/x"), ElementsAre(2, 3));
  EXPECT_THAT(read.ReadFloats("/group/x"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(read.ReadInt("/number"), -7);
  EXPECT_EQ(read.ReadText("/text"), "some words");
  EXPECT_TRUE(read.Has("/group/x"));
  EXPECT_FALSE(read.Has("/nothing/x"));
}

TEST_F(Hdf5FileTest, ManyCanBeCreatedInMemoryAtATime) {
  Hdf5File one = Hdf5File::InMemory(), other = Hdf5File::InMemory();
  one.WriteInt("/x", 1);
  EXPECT_FALSE(other.Has("/x"));
}

TEST_F(Hdf5FileTest, AppendedRowsAreInTheFileImmediately) {
  Hdf5File file = Hdf5File::Create(path_);
  const float values[] = {1, 2, 3, 4};
  file.AppendRows("/x", {2, 2}, values);
  file.AppendRows("/x", {1, 2}, values);
  const std::string copy = path_ + ".copy";
  fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
  EXPECT_THAT(Hdf5File::Open(copy).ReadFloats("/x"), ElementsAre(1, 2, 3, 4, 1, 2));
  EXPECT_THAT(Hdf5File::Open(copy).ShapeOf("/x"), ElementsAre(3, 2));
  fs::remove(copy);
  EXPECT_THAT(
      [&] {
        file.AppendRows("/x", {1, 3}, values);
      },
      ThrowsMessage<Error>(HasSubstr("rows of another shape")));
}

TEST_F(Hdf5FileTest, NamesObjectsThatAreMissingOrOfAnotherKind) {
  Hdf5File file = Hdf5File::InMemory();
  const float values[] = {1, 2};
  file.WriteFloats("/x", {2}, values);
  file.WriteText("/text", "abc");
  EXPECT_THAT([&] { file.ReadFloats("/y"); }, ThrowsMessage<Error>(HasSubstr("no dataset /y")));
  EXPECT_THAT([&] { file.ReadFloats("/text"); },
              ThrowsMessage<Error>(HasSubstr("/text does not hold numbers")));
  EXPECT_THAT([&] { file.ReadText("/x"); }, ThrowsMessage<Error>(HasSubstr("/x is not text")));
  EXPECT_THAT([&] { file.ReadInt("/x"); },
              ThrowsMessage<Error>(HasSubstr("is not a single number")));
  EXPECT_THAT([&] { file.WriteFloats("/x", {2}, values); },
              ThrowsMessage<Error>(HasSubstr("cannot create the dataset /x")));
}

// Creates a dataset without stored values. The library would fill in as many values as it claims.
void MakeEmptyDataset(const std::string& path, std::vector<hsize_t> extents, hsize_t chunk = 0) {
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  std::vector<hsize_t> limits = extents;
  if (chunk > 0) {
    H5Pset_chunk(options.get(), 1, &chunk);
    limits = {H5S_UNLIMITED};
  }
  const Hdf5Handle space(
      H5Screate_simple(static_cast<int>(extents.size()), extents.data(), limits.data()), H5Sclose);
  const Hdf5Handle dataset(H5Dcreate2(file.get(), "/x", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                                      options.get(), H5P_DEFAULT),
                           H5Dclose);
  ASSERT_TRUE(dataset.ok());
}

TEST_F(Hdf5FileTest, RejectsClaimedButMissingValues) {
  MakeEmptyDataset(path_, {1000, 1000000});
  EXPECT_THAT([&] { Hdf5File::Open(path_).ReadFloats("/x"); },
              ThrowsMessage<Error>(
                  HasSubstr("the dataset /x claims 1000000000 values, but contains 0 bytes")));
  MakeEmptyDataset(path_, {hsize_t{1} << 33, hsize_t{1} << 33});
  EXPECT_THAT([&] { Hdf5File::Open(path_).ReadFloats("/x"); },
              ThrowsMessage<Error>(
                  HasSubstr("of shape (8589934592, 8589934592) is larger than the limit")));
  MakeEmptyDataset(path_, {5}, 1 << 29);
  EXPECT_THAT([&] { Hdf5File::Open(path_).ReadFloats("/x"); },
              ThrowsMessage<Error>(HasSubstr("claims 536870912 values")));
  MakeEmptyDataset(path_, {2, 3});
  EXPECT_THAT(Hdf5File::Open(path_).ReadFloats("/x"), testing::Each(0));
}

TEST_F(Hdf5FileTest, DoesNotReadValuesOfOtherFiles) {
  const std::string other = path_ + ".other";
  std::ofstream(other) << "abcdefgh";
  const hsize_t count = 2;
  {
    const Hdf5Handle file(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          H5Fclose);
    const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_external(options.get(), other.c_str(), 0, 8);
    const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Hdf5Handle raw(H5Dcreate2(file.get(), "/raw", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                                    options.get(), H5P_DEFAULT),
                         H5Dclose);
    const Hdf5Handle mapping(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_virtual(mapping.get(), space.get(), other.c_str(), "/x", space.get());
    const Hdf5Handle mapped(H5Dcreate2(file.get(), "/mapped", H5T_NATIVE_FLOAT, space.get(),
                                       H5P_DEFAULT, mapping.get(), H5P_DEFAULT),
                            H5Dclose);
    ASSERT_TRUE(raw.ok() && mapped.ok());
  }
  for (const char* name : {"/raw", "/mapped"}) {
    EXPECT_THAT([&] { Hdf5File::Open(path_).ReadFloats(name); },
                ThrowsMessage<Error>(HasSubstr("stores its values in another file")))
        << name;
  }
  fs::remove(other);
}

// Covers a link to another file, and a soft link through that link.
TEST_F(Hdf5FileTest, DoesNotFollowLinksToOtherFiles) {
  const std::string other = path_ + ".other";
  Hdf5File file = Hdf5File::InMemory();
  file.MakeGroup("/group");
  const float values[] = {1, 2};
  file.WriteFloats("/group/x", {2}, values);
  file.Save(other);
  file.Save(path_);
  {
    const Hdf5Handle own(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    ASSERT_GE(
        H5Lcreate_external(other.c_str(), "/group", own.get(), "/out", H5P_DEFAULT, H5P_DEFAULT),
        0);
    ASSERT_GE(H5Lcreate_soft("/out/x", own.get(), "/soft", H5P_DEFAULT, H5P_DEFAULT), 0);
    ASSERT_GE(H5Lcreate_soft("/group/x", own.get(), "/own", H5P_DEFAULT, H5P_DEFAULT), 0);
  }
  const Hdf5File read = Hdf5File::Open(path_);
  EXPECT_THAT(read.ReadFloats("/own"), ElementsAre(1, 2));
  EXPECT_FALSE(read.Has("/out/x"));
  EXPECT_FALSE(read.IsGroup("/out"));
  EXPECT_THROW(read.Children("/out"), Error);
  for (const char* name : {"/out/x", "/soft"}) EXPECT_THROW(read.ReadFloats(name), Error) << name;
  fs::remove(other);
}

TEST_F(Hdf5FileTest, ReadsASingleTextOnly) {
  {
    const Hdf5Handle file(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          H5Fclose);
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), 8);
    const hsize_t count = 1000;
    const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Hdf5Handle dataset(H5Dcreate2(file.get(), "/text", type.get(), space.get(), H5P_DEFAULT,
                                        H5P_DEFAULT, H5P_DEFAULT),
                             H5Dclose);
    ASSERT_TRUE(dataset.ok());
  }
  EXPECT_THAT([&] { Hdf5File::Open(path_).ReadText("/text"); },
              ThrowsMessage<Error>(HasSubstr("/text is not a single text of at most 65536 bytes")));
}

TEST_F(Hdf5FileTest, RejectsFilesThatAreMissingOrNotHdf5) {
  EXPECT_THAT([&] { Hdf5File::Open(path_); },
              ThrowsMessage<Error>("there is no HDF5 file " + path_));
  std::ofstream(path_) << "no such file";
  EXPECT_THAT([&] { Hdf5File::Open(path_); },
              ThrowsMessage<Error>(HasSubstr("cannot read " + path_ + " as an HDF5 file")));
  EXPECT_THAT([] { Hdf5File::Create("/nowhere/x.h5"); },
              ThrowsMessage<Error>(HasSubstr("cannot create the HDF5 file /nowhere/x.h5")));
}

}  // namespace
}  // namespace hearth::caffe
