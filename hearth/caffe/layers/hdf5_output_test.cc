#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {

// The layer has no top, so this row only completes the table; the tests below read the file.
std::vector<LayerCase> Hdf5OutputCases() {
  LayerCase row{"hdf5_output",
                fmt::format("type: 'HDF5Output' hdf5_output_param {{ file_name: '{}' }}",
                            TestFolder() + "layer_table.h5"),
                {{{3, 2}}, {{3}}},
                [](const Arrays&, const Arrays&) { return Arrays(); },
                0};
  row.has_gradient = false;
  row.fixed_rows = true;
  return {row};
}
const bool kHdf5OutputCases = AddLayerCases(Hdf5OutputCases);

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Hdf5Output : public FileLayerTest {
 protected:
  std::unique_ptr<Layer> Make(int rank = 0) const {
    LayerParameter param;
    param.set_type("HDF5Output");
    param.mutable_hdf5_output_param()->set_file_name(Path("out.h5"));
    auto layer = LayerRegistry::Default().Create(param, FileContext(TEST, rank, rank + 1));
    layer->SetUp({}, {});
    return layer;
  }
  // Runs Forward with bottoms that are filled with `value`.
  static void Run(Layer& layer, int rows, int labels, float value) {
    Blob data({rows, 2}), label({labels});
    data.data().fill_(value);
    label.data().fill_(value);
    layer.Reshape({&data, &label}, {});
    layer.Forward({&data, &label}, {});
  }
};

TEST_F(Hdf5Output, AppendsTheRowsOfEveryPass) {
  const auto layer = Make();
  Run(*layer, 2, 2, 1);
  Run(*layer, 1, 1, 2);
  const Hdf5File file = Hdf5File::Open(Path("out.h5"));
  EXPECT_THAT(file.ShapeOf("/data"), ElementsAre(3, 2, 1, 1));
  EXPECT_THAT(file.ReadFloats("/data"), ElementsAre(1, 1, 1, 1, 2, 2));
  EXPECT_THAT(file.ShapeOf("/label"), ElementsAre(3, 1, 1, 1));
  EXPECT_THAT(file.ReadFloats("/label"), ElementsAre(1, 1, 2));
}

TEST_F(Hdf5Output, OfSeveralRanksWritesAFilePerRank) {
  Make(0);
  Make(1);
  EXPECT_TRUE(std::filesystem::exists(Path("out.h5")));
  EXPECT_TRUE(std::filesystem::exists(Path("out.h5.rank1")));
}

TEST_F(Hdf5Output, RejectsAnotherNumberOfLabels) {
  const auto layer = Make();
  EXPECT_THAT([&] { Run(*layer, 2, 3, 0); }, ThrowsMessage<Error>(HasSubstr("2 and 3 rows")));
}

}  // namespace
}  // namespace hearth::caffe
