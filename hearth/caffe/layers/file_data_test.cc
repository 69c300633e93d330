// The rows of the layer table for layers that read files; each makes its file first.
#include "hearth/caffe/layers/file_data.h"

#include <fmt/format.h>

#include "hearth/caffe/database/database.h"
#include "hearth/caffe/hdf5/hdf5_file.h"
#include "hearth/caffe/image/test_images.h"
#include "hearth/caffe/layers/file_layer_run.h"
#include "hearth/caffe/layers/layer_case.h"
#include "hearth/caffe/net_file.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/solver.h"

namespace hearth::caffe {
namespace {

std::string InTempDir(const std::string& name) {
  return testing::TempDir() + "hearth_layer_table_" + name;
}

void WriteDatabase() {
  std::filesystem::remove_all(InTempDir("db"));
  auto writer = CreateDatabase(DataParameter::LMDB, InTempDir("db"));
  Datum datum;
  datum.set_channels(1);
  datum.set_height(1);
  datum.set_width(2);
  datum.set_data(std::string("\x03\x04"));
  datum.set_label(5);
  writer->Put("key", WireBytes(datum));
  writer->Commit();
}

void WriteHdf5() {
  const float values[] = {1, 2, 3, 4};
  Hdf5File file = Hdf5File::InMemory();
  file.WriteFloats("/x", {2, 2}, values);
  file.Save(InTempDir("x.h5"));
  std::ofstream(InTempDir("x.txt")) << InTempDir("x.h5");
}

void WritePicture() {
  std::ofstream(InTempDir("p.png"), std::ios::binary) << EncodePng({1, 2, 1, {6, 6}});
  std::ofstream(InTempDir("p.txt")) << InTempDir("p.png") << " 8";
  std::ofstream(InTempDir("w.txt")) << "# 0 " << InTempDir("p.png") << " 3 1 2 1 8 0.9 0 0 1 0";
}

LayerCase Row(const std::string& name, const std::string& layer, const Arrays& tops,
              void (*write)()) {
  LayerCase row{name,
                layer,
                {},
                [tops](const Arrays&, const Arrays&) { return tops; },
                static_cast<int>(tops.size())};
  row.has_gradient = false;
  row.prepare_context = [write](NetContext*) { write(); };
  return row;
}

// Trains on seven records, two at a time.
class FileDataInASolver : public FileLayerTest {
 protected:
  FileDataInASolver() {
    auto writer = CreateDatabase(DataParameter::LEVELDB, Path("db"));
    Datum datum;
    datum.set_channels(1);
    datum.set_height(1);
    datum.set_width(2);
    for (int i = 0; i < 7; ++i) {
      datum.set_data({static_cast<char>(3 * i), static_cast<char>(i * i)});
      datum.set_label(i);
      writer->Put(std::to_string(i), WireBytes(datum));
    }
    writer->Commit();
  }

  std::unique_ptr<Solver> MakeSolver() const {
    const std::string text = fmt::format(
        R"(base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 max_iter: 9 snapshot_prefix: "{0}s"
           net_param {{
             layer {{ name: "d" type: "Data" top: "x" top: "y" transform_param {{ scale: 0.05 }}
                      data_param {{ source: "{0}db" batch_size: 2 }} }}
             layer {{ name: "ip" type: "InnerProduct" bottom: "x" top: "p"
                      inner_product_param {{ num_output: 1 }} }}
             layer {{ name: "loss" type: "EuclideanLoss" bottom: "p" bottom: "y" }} }})",
        Path(""));
    return std::make_unique<Solver>(ParseSolver(text, "solver"), SolverOptions());
  }
};

TEST_F(FileDataInASolver, GoesOnWithTheNextItemAfterARestore) {
  const auto straight = MakeSolver();
  straight->Step(3);
  const std::string state = straight->Snapshot().second;
  straight->Step(4);
  const auto resumed = MakeSolver();
  resumed->Restore(state);
  resumed->Step(4);
  EXPECT_TRUE(at::equal(resumed->net().params().data(), straight->net().params().data()));
}

}  // namespace

std::vector<LayerCase> FileDataCases() {
  return {
      Row("data",
          fmt::format("type: 'Data' data_param {{ source: '{}' backend: LMDB batch_size: 1 }}",
                      InTempDir("db")),
          {Array({1, 1, 1, 2}, {3, 4}), Array({1}, {5})}, WriteDatabase),
      Row("hdf5_data",
          fmt::format("type: 'HDF5Data' top: 'x' hdf5_data_param {{ source: '{}' batch_size: 3 }}",
                      InTempDir("x.txt")),
          {Array({3, 2}, {1, 2, 3, 4, 1, 2})}, WriteHdf5),
      Row("image_data",
          fmt::format("type: 'ImageData' image_data_param {{ source: '{}' is_color: false }}",
                      InTempDir("p.txt")),
          {Array({1, 1, 1, 2}, {6, 6}), Array({1}, {8})}, WritePicture),
      Row("window_data",
          fmt::format("type: 'WindowData' transform_param {{ crop_size: 1 }} window_data_param {{ "
                      "source: '{}' batch_size: 1 fg_fraction: 1 }}",
                      InTempDir("w.txt")),
          {Array({1, 3, 1, 1}, {6, 6, 6}), Array({1}, {8})}, WritePicture),
  };
}

}  // namespace hearth::caffe
