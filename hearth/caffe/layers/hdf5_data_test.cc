#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Hdf5Data : public FileLayerTest {
 protected:
  // Writes a file with datasets x (two values per row) and y (one value per row). All values of row
  // i are first + i.
  void WritePart(const std::string& name, int first, int rows) const {
    std::vector<float> x, y;
    for (int i = first; i < first + rows; ++i) {
      x.insert(x.end(), 2, static_cast<float>(i));
      y.push_back(static_cast<float>(i));
    }
    Hdf5File file = Hdf5File::InMemory();
    file.WriteFloats("/x", {rows, 2}, x.data());
    file.WriteFloats("/y", {rows}, y.data());
    file.Save(Path(name));
  }
  void WriteParts() const {
    WritePart("a.h5", 0, 3);
    WritePart("b.h5", 3, 2);
    Write("list.txt", Path("a.h5") + "\n" + Path("b.h5") + "\n");
  }
  std::string Layer(int batch_size, const std::string& more = "") const {
    return fmt::format(
        "type: 'HDF5Data' top: 'x' top: 'y' hdf5_data_param {{ source: '{}' "
        "batch_size: {} {} }}",
        Path("list.txt"), batch_size, more);
  }
};

TEST_F(Hdf5Data, ReadsAllFilesRepeatedly) {
  WriteParts();
  FileLayerRun run(Layer(4));
  EXPECT_THAT(run.shape(0), ElementsAre(4, 2));
  EXPECT_THAT(run.shape(1), ElementsAre(4));
  EXPECT_THAT(run.Next(1, 2), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2));
  EXPECT_THAT(run.Values(0), ElementsAre(4, 4, 0, 0, 1, 1, 2, 2));
}

TEST_F(Hdf5Data, IsDistributedOverTheRanksRoundRobin) {
  WriteParts();
  FileLayerRun run(Layer(2), FileContext(TRAIN, 1, 2));
  EXPECT_THAT(run.Next(1, 2), ElementsAre(1, 3, 0, 2));
}

TEST_F(Hdf5Data, IsShuffledWithinFilesEquallyOnAllRanks) {
  WritePart("a.h5", 0, 20);
  Write("list.txt", Path("a.h5"));
  FileLayerRun run(Layer(20, "shuffle: true"), FileContext(TRAIN));
  const std::vector<float> first = run.Next(1);
  EXPECT_NE(first, run.Next(1));
  std::vector<float> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(first, sorted);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sorted[i], static_cast<float>(i));
  FileLayerRun rank(Layer(2, "shuffle: true"), FileContext(TRAIN, 1, 2));
  EXPECT_THAT(rank.Next(1), ElementsAre(first[1], first[3]));
}

TEST_F(Hdf5Data, ResumesWhereAnUninterruptedRunWouldBe) {
  WriteParts();
  FileLayerRun unbroken(Layer(2, "shuffle: true"), FileContext(TRAIN));
  unbroken.Next(1, 4);
  FileLayerRun resumed(Layer(2, "shuffle: true"), FileContext(TRAIN));
  for (int i = 0; i < 5; ++i) resumed.layer().Fetch();
  EXPECT_EQ(resumed.Next(1, 3), unbroken.Next(1, 3));
}

TEST_F(Hdf5Data, RejectsMismatchedDatasets) {
  EXPECT_THAT([&] { FileLayerRun(Layer(1)); }, ThrowsMessage<Error>(HasSubstr("list.txt")));
  Write("list.txt", "\n");
  EXPECT_THAT([&] { FileLayerRun(Layer(1)); }, ThrowsMessage<Error>(HasSubstr("has no files")));
  WriteParts();
  EXPECT_THAT([&] { FileLayerRun(Layer(1) + " transform_param { scale: 2 }"); },
              ThrowsMessage<Error>(HasSubstr("remove transform_param")));
  const float values[] = {1, 2, 3, 4};
  Hdf5File wide = Hdf5File::InMemory();
  wide.WriteFloats("/x", {1, 4}, values);
  wide.WriteFloats("/y", {1}, values);
  wide.Save(Path("b.h5"));
  FileLayerRun run(Layer(4));
  EXPECT_THAT([&] { run.Next(0); },
              ThrowsMessage<Error>(HasSubstr("have the shape (4), but (2) in another file")));
  Hdf5File uneven = Hdf5File::InMemory();
  uneven.WriteFloats("/x", {2, 2}, values);
  uneven.WriteFloats("/y", {4}, values);
  uneven.Save(Path("a.h5"));
  EXPECT_THAT([&] { FileLayerRun(Layer(1)); },
              ThrowsMessage<Error>(HasSubstr("dataset y has 4 rows, but x has 2")));
  Write("list.txt", Path("missing.h5"));
  EXPECT_THAT([&] { FileLayerRun(Layer(1)); },
              ThrowsMessage<Error>(HasSubstr("there is no HDF5 file")));
}

}  // namespace
}  // namespace hearth::caffe
