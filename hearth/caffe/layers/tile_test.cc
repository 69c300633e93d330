#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

LayerCase TileRow(std::string name, const std::string& param, size_t axis, int64_t tiles) {
  return {std::move(name),
          "type: 'Tile' tile_param { " + param + " }",
          {{{2, 3, 2}}},
          [=](const Arrays& bottoms, const Arrays&) {
            const Array& x = bottoms[0];
            Shape shape = x.shape;
            shape[axis] *= tiles;
            Array y(shape);
            for (int64_t i = 0; i < shape[0]; ++i)
              for (int64_t j = 0; j < shape[1]; ++j)
                for (int64_t k = 0; k < shape[2]; ++k) {
                  y.at({i, j, k}) = x.at({i % x.shape[0], j % x.shape[1], k % x.shape[2]});
                }
            return Arrays{y};
          }};
}

}  // namespace

std::vector<LayerCase> TileCases() {
  return {
      TileRow("tile", "tiles: 3", 1, 3),
      TileRow("tile_last", "tiles: 2 axis: -1", 2, 2),
      TileRow("tile_rows", "tiles: 2 axis: 0", 0, 2),
      TileRow("tile_once", "tiles: 1", 1, 1),
  };
}
const bool kTileCases = AddLayerCases(TileCases);

namespace {

TEST(Tile, RequiresANumberOfCopies) {
  const LayerCase row{"case", "type: 'Tile'", {{{2, 3}}}, nullptr};
  EXPECT_THROW(LayerRun run(row), Error);
}

}  // namespace
}  // namespace hearth::caffe
