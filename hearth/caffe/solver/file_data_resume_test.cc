#include <gtest/gtest.h>

#include <string>

#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

// Tests a solver that trains on seven records, two at a time.
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

TEST_F(FileDataInASolver, ContinuesWithTheNextItemAfterARestore) {
  const auto straight = MakeSolver();
  straight->Step(3);
  const std::string state = straight->Snapshot().second;
  straight->Step(4);
  const auto resumed = MakeSolver();
  resumed->Restore(state);
  resumed->Step(4);
  EXPECT_TRUE(Equal(resumed->net().params().data(), straight->net().params().data()));
}

}  // namespace
}  // namespace hearth::caffe
