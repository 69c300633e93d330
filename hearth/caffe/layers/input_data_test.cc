#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/data/testing/row_testing.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/net/array_input.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {

// Rows of the layer table for layers without bottoms, which check shapes and values.
std::vector<LayerCase> DataCases() {
  const auto constant = [](const Arrays& arrays) {
    return [arrays](const Arrays&, const Arrays&) { return arrays; };
  };
  const auto row = [](std::string name, std::string layer, auto reference, int tops) {
    LayerCase layer_case{std::move(name), std::move(layer), {}, reference, tops};
    layer_case.has_gradient = false;
    return layer_case;
  };
  LayerCase cos = row("cos_data",
                      "type: 'CoSData' cos_data_param { batch_size: 5 top { name: 'x' type: INT "
                      "channels: 1 sample_num_axes: 1 transpose: true } top { name: 'x' type: INT "
                      "sample_num_axes: 0 } }",
                      constant({Array({1, 3}, {0, 1, 2}), Array({3}, {0, 1, 2})}), 2);
  cos.prepare_context = [](NetContext* context) {
    context->open_source = [](const LayerParameter&) { return SourceOf({CountingBatch(3)}); };
  };
  cos.prepare_layer = [](Layer* layer) { layer->Fetch(); };
  LayerCase memory =
      row("memory_data",
          "type: 'MemoryData' memory_data_param { batch_size: 2 channels: 1 height: 1 "
          "width: 2 }",
          constant({Array({2, 1, 1, 2}, {0, 1, 2, 3}), Array({2, 1, 1, 1}, {0, 1})}), 2);
  memory.prepare_layer = [](Layer* layer) {
    dynamic_cast<ArrayInput&>(*layer).SetArrays(Arange(4).view({2, 1, 1, 2}), Arange(2));
  };
  LayerCase parameter{"parameter",
                      "type: 'Parameter' parameter_param { shape { dim: 2 dim: 3 } }",
                      {},
                      [](const Arrays&, const Arrays& params) { return params; }};
  return {
      row("input", "type: 'Input' input_param { shape { dim: 2 dim: 3 } }",
          constant({Array({2, 3}), Array({2, 3})}), 2),
      row("dummy_data",
          "type: 'DummyData' dummy_data_param { shape { dim: 2 } shape { dim: 1 dim: 2 } "
          "data_filler { type: 'constant' value: 3 } }",
          constant({Array({2}, {3, 3}), Array({1, 2}, {3, 3})}), 2),
      row("dummy_data_legacy",
          "type: 'DummyData' dummy_data_param { num: 2 channels: 1 height: 1 width: 1 }",
          constant({Array({2, 1, 1, 1})}), 1),
      parameter,
      cos,
      memory,
  };
}
const bool kDataCases = AddLayerCases(DataCases);

namespace {

LayerCase Dummy(const std::string& param, int tops) {
  return {"case", "type: 'DummyData' dummy_data_param { " + param + " }", {}, nullptr, tops};
}

TEST(DummyData, RefillsRandomTopsButNotConstantOnes) {
  const LayerCase row =
      Dummy("shape { dim: 4 } data_filler { type: 'gaussian' } data_filler { value: 2 }", 2);
  LayerRun run(row);
  run.Forward();
  const Array first = run.TopValues()[0];
  run.tops()[1]->data().fill_(9);
  run.Forward();
  EXPECT_NE(run.TopValues()[0].values, first.values);
  EXPECT_EQ(run.TopValues()[1].values[0], 9);
}

TEST(DummyData, NamesMismatchedCounts) {
  EXPECT_THROW(LayerRun run(Dummy("shape { dim: 1 } shape { dim: 1 }", 3)), Error);
  EXPECT_THROW(LayerRun run(Dummy("shape { dim: 1 } data_filler { } data_filler { }", 3)), Error);
  EXPECT_THROW(LayerRun run(Dummy("num: 1", 1)), Error);
}

TEST(Input, KeepsAShapeThatTheProgramSet) {
  const LayerCase row = DataCases()[0];
  LayerRun run(row);
  run.tops()[0]->Reshape({7});
  run.Forward();
  EXPECT_THAT(run.tops()[0]->shape(), ::testing::ElementsAre(7));
}

}  // namespace
}  // namespace hearth::caffe
