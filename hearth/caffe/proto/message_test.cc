#include "hearth/caffe/proto/message.h"

#include <gtest/gtest.h>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {
namespace {

TEST(Message, HasDefaultsAndPresence) {
  SolverParameter solver;
  EXPECT_FLOAT_EQ(solver.delta(), 1e-8f);
  EXPECT_EQ(solver.regularization_type(), "L2");
  EXPECT_TRUE(solver.snapshot_after_train());
  EXPECT_EQ(solver.solver_mode(), SolverParameter::GPU);
  EXPECT_FALSE(solver.has_display());
  solver.set_display(0);
  EXPECT_TRUE(solver.has_display());
  solver.set_delta(1);
  solver.clear_delta();
  EXPECT_FLOAT_EQ(solver.delta(), 1e-8f);
  EXPECT_FALSE(solver.has_delta());
}

TEST(Message, CopiesDeeply) {
  LayerParameter layer;
  layer.mutable_convolution_param()->set_num_output(3);
  LayerParameter copy = layer;
  copy.mutable_convolution_param()->set_num_output(4);
  EXPECT_EQ(layer.convolution_param().num_output(), 3u);
  copy = layer;
  EXPECT_EQ(copy.convolution_param().num_output(), 3u);
}

TEST(Message, HasTheFieldsOfCaffeOnSpark) {
  EXPECT_EQ(LayerParameter::Descriptor().Find(std::string_view("source_class"))->number, 10001);
  EXPECT_EQ(LayerParameter::Descriptor().Find(std::string_view("cos_data_param"))->number, 10010);
  EXPECT_EQ(MemoryDataParameter::Descriptor().Find(10002)->name,
            std::string("dataframe_column_select"));
  CoSDataParameter param;
  CoSDataParameter::TopBlob* top = param.add_top();
  EXPECT_EQ(top->sample_num_axes(), 3u);
  top->set_type(CoSDataParameter::INT_ARRAY);
  EXPECT_EQ(param.top(0).type(), CoSDataParameter::INT_ARRAY);
}

}  // namespace
}  // namespace hearth::caffe
