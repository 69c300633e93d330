// Rows of the layer table for layers that read files; each row creates its file first.
#include "hearth/caffe/layers/file_data.h"
#include "hearth/base/testing/test_folder_testing.h"

#include <fmt/format.h>

#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

std::string InTempDir(const std::string& name) { return TestFolder() + "layer_table_" + name; }

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

void WriteImage() {
  std::ofstream(InTempDir("p.png"), std::ios::binary) << image::EncodePng({1, 2, 1, {6, 6}});
  std::ofstream(InTempDir("p.txt")) << InTempDir("p.png") << " 8";
  std::ofstream(InTempDir("w.txt")) << "# 0 " << InTempDir("p.png") << " 3 1 2 1 8 0.9 0 0 1 0";
}

LayerCase FileDataRow(const std::string& name, const std::string& layer, const Arrays& tops,
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

}  // namespace

std::vector<LayerCase> FileDataCases() {
  return {
      FileDataRow(
          "data",
          fmt::format("type: 'Data' data_param {{ source: '{}' backend: LMDB batch_size: 1 }}",
                      InTempDir("db")),
          {Array({1, 1, 1, 2}, {3, 4}), Array({1}, {5})}, WriteDatabase),
      FileDataRow(
          "hdf5_data",
          fmt::format("type: 'HDF5Data' top: 'x' hdf5_data_param {{ source: '{}' batch_size: 3 }}",
                      InTempDir("x.txt")),
          {Array({3, 2}, {1, 2, 3, 4, 1, 2})}, WriteHdf5),
      FileDataRow(
          "image_data",
          fmt::format("type: 'ImageData' image_data_param {{ source: '{}' is_color: false }}",
                      InTempDir("p.txt")),
          {Array({1, 1, 1, 2}, {6, 6}), Array({1}, {8})}, WriteImage),
      FileDataRow(
          "window_data",
          fmt::format("type: 'WindowData' transform_param {{ crop_size: 1 }} window_data_param {{ "
                      "source: '{}' batch_size: 1 fg_fraction: 1 }}",
                      InTempDir("w.txt")),
          {Array({1, 3, 1, 1}, {6, 6, 6}), Array({1}, {8})}, WriteImage),
  };
}
const bool kFileDataCases = AddLayerCases(FileDataCases);

}  // namespace hearth::caffe
