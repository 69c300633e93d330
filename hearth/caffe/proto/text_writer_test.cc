#include "hearth/caffe/proto/text_writer.h"

#include <gtest/gtest.h>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/proto/wire_writer.h"

namespace hearth::caffe {
namespace {

TEST(WriteText, WritesOnlyPresentFields) {
  SolverParameter solver;
  solver.set_net("net.prototxt");
  solver.set_base_lr(0.01f);
  solver.mutable_train_state()->add_stage("a");
  solver.set_snapshot_format(SolverParameter::HDF5);
  EXPECT_EQ(WriteText(solver),
            "base_lr: 0.01\n"
            "net: \"net.prototxt\"\n"
            "train_state {\n"
            "  stage: \"a\"\n"
            "}\n"
            "snapshot_format: HDF5\n");
}

TEST(WriteText, RoundTripsWithParseText) {
  NetParameter net, again;
  ParseText(R"(name: "\001\n\"\\" force_backward: true
               layer { loss_weight: 0.1 loss_weight: -inf propagate_down: false
                       blobs { shape { dim: 2 dim: 9223372036854775807 } data: 0.333333343 double_data: 1e-300 } })",
            "text", &net);
  ParseText(WriteText(net), "again", &again);
  EXPECT_EQ(WireBytes(net), WireBytes(again));
  EXPECT_EQ(again.name(), "\001\n\"\\");
}

}  // namespace
}  // namespace hearth::caffe
