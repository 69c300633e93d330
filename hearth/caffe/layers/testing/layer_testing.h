// Rows of the layer table tests: each is a layer as text, its inputs and a plain reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// A row-major array, for references.
struct Array {
  Shape shape;
  std::vector<float> values;

  Array() = default;
  explicit Array(Shape s) : shape(std::move(s)), values(Count()) {}
  Array(Shape s, std::vector<float> v) : shape(std::move(s)), values(std::move(v)) {}

  int64_t Count() const;
  // Value at the given position along each axis.
  float& at(const Shape& position) { return values[Offset(position)]; }
  float at(const Shape& position) const { return values[Offset(position)]; }

 private:
  int64_t Offset(const Shape& position) const;
};
using Arrays = std::vector<Array>;

// Values of one bottom: evenly spaced over [low, high] in random order, so that no two are equal;
// or, with `classes`, random labels from first_class to first_class + classes - 1.
struct CaseInput {
  Shape shape = {};
  float low = -2, high = 2;
  int classes = 0;
  int first_class = 0;
};

// A row of the layer table.
struct LayerCase {
  std::string name;   // unique, [a-z0-9_]
  std::string layer;  // LayerParameter as text
  std::vector<CaseInput> bottoms;
  // Computes the tops from bottoms and parameters, directly by the formula.
  std::function<Arrays(const Arrays& bottoms, const Arrays& params)> reference;
  int tops = 1;
  Phase phase = TRAIN;
  std::vector<int> without_gradient = {};  // bottoms (labels) whose gradient must not be requested
  std::vector<int> tops_without_gradient = {};
  bool has_gradient = true;
  bool in_place = false;    // also run with the top in the bottom's memory
  bool fixed_rows = false;  // the first axis cannot change
  std::function<void(NetContext*)> prepare_context = {};
  std::function<void(Layer*)> prepare_layer = {};  // after SetUp
  ComputeDevice device = {};
};

// A layer with its blobs, outside of a net.
class LayerRun {
 public:
  // Creates the layer and fills bottoms and parameters with the case's values.
  explicit LayerRun(const LayerCase& layer_case, bool in_place = false);

  // Fills the bottoms, with `rows` rows on their first axis (0: as in the case).
  void FillBottoms(int64_t rows, unsigned seed);
  // Sets the layout of the blobs with four axes, and writes the bottoms' values again.
  void SetLayouts(Layout bottoms, Layout tops);
  void Forward();
  // Writes the tops' diffs, then runs backward for every bottom that has a gradient.
  void Backward(const Arrays& top_diffs);

  Layer& layer() { return *layer_; }
  Blobs& bottoms() { return bottom_pointers_; }
  Blobs& tops() { return top_pointers_; }
  std::vector<bool> propagate_down() const;
  Arrays BottomValues() const { return Values(bottom_pointers_); }
  Arrays TopValues() const { return Values(top_pointers_); }
  Arrays ParamValues() const;
  // The reference's result for the current bottoms. Call it before an in-place Forward.
  Arrays Expected() const { return case_.reference(BottomValues(), ParamValues()); }

 private:
  static Arrays Values(const Blobs& blobs);

  const LayerCase& case_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::unique_ptr<Blob>> storage_;
  Blobs bottom_pointers_, top_pointers_;
};

Array ValuesOf(Blob& blob);
void SetValues(const Array& array, Tensor& tensor);

// Returns every row of the table. The test file of each family adds its rows before main() runs.
std::vector<LayerCase> AllLayerCases();
bool AddLayerCases(std::vector<LayerCase> (*cases)());

}  // namespace hearth::caffe
