// Reference of LSTM and RNN in plain loops, and rows of the layer table for both.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {

using Doubles = std::vector<double>;

inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Computes one row of a sequence by plain loops over the formulas.
struct Cell {
  bool lstm;
  Doubles hidden, cells;

  Doubles Product(const Array& weight, const float* x) const {
    Doubles sums(weight.shape[0]);
    for (int64_t o = 0; o < weight.shape[0]; ++o)
      for (int64_t i = 0; i < weight.shape[1]; ++i) {
        sums[o] += weight.at({o, i}) * static_cast<double>(x[i]);
      }
    return sums;
  }

  // `sums`: the contribution of the inputs and the bias.
  void Step(Doubles sums, double cont, const Array& weight) {
    const size_t size = hidden.size();
    const std::vector<float> carried = [&] {
      std::vector<float> values;
      for (const double h : hidden) values.push_back(static_cast<float>(cont * h));
      return values;
    }();
    const Doubles recurrent = Product(weight, carried.data());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += recurrent[i];
    for (size_t i = 0; i < size; ++i) {
      if (!lstm) {
        hidden[i] = std::tanh(sums[i]);
        continue;
      }
      const double in = Sigmoid(sums[i]), forget = Sigmoid(sums[size + i]);
      const double out = Sigmoid(sums[2 * size + i]), value = std::tanh(sums[3 * size + i]);
      cells[i] = cont * forget * cells[i] + in * value;
      hidden[i] = out * std::tanh(cells[i]);
    }
  }
};

// Options of a recurrent layer; operator() computes the layer's reference.
struct Recurrent {
  bool lstm = true;
  bool has_static = false, exposed = false;

  Arrays operator()(const Arrays& bottoms, const Arrays& params) const {
    const int64_t steps = bottoms[0].shape[0], rows = bottoms[0].shape[1];
    const size_t hidden_weight = has_static ? 3 : 2;
    const int64_t size = params[hidden_weight].shape[1];
    Arrays tops = {Array({steps, rows, size})};
    if (exposed) tops.resize(lstm ? 3 : 2, Array({1, rows, size}));
    for (int64_t row = 0; row < rows; ++row) {
      Cell cell{lstm, Doubles(size), Doubles(size)};
      for (int64_t i = 0; exposed && i < size; ++i) {
        cell.hidden[i] = bottoms[hidden_weight].at({0, row, i});
        if (lstm) cell.cells[i] = bottoms[hidden_weight + 1].at({0, row, i});
      }
      for (int64_t t = 0; t < steps; ++t) {
        cell.Step(Sums(bottoms, params, cell, t * rows + row), bottoms[1].at({t, row}),
                  params[hidden_weight]);
        const Doubles out = Output(cell, params);
        std::copy(out.begin(), out.end(), &tops[0].values[(t * rows + row) * size]);
      }
      for (int64_t i = 0; exposed && i < size; ++i) {
        tops[1].at({0, row, i}) = static_cast<float>(cell.hidden[i]);
        if (lstm) tops[2].at({0, row, i}) = static_cast<float>(cell.cells[i]);
      }
    }
    return tops;
  }

  Doubles Sums(const Arrays& bottoms, const Arrays& params, const Cell& cell, int64_t at) const {
    Doubles sums = cell.Product(params[0], &bottoms[0].values[at * params[0].shape[1]]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += params[1].values[i];
    if (!has_static) return sums;
    const int64_t row = at % bottoms[0].shape[1];
    const Doubles more = cell.Product(params[2], &bottoms[2].values[row * params[2].shape[1]]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
    return sums;
  }

  Doubles Output(const Cell& cell, const Arrays& params) const {
    if (lstm) return cell.hidden;
    const size_t weight = has_static ? 4 : 3;
    const std::vector<float> hidden(cell.hidden.begin(), cell.hidden.end());
    Doubles out = cell.Product(params[weight], hidden.data());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = std::tanh(out[i] + params[weight + 1].values[i]);
    return out;
  }
};

inline constexpr int64_t kSteps = 4, kRows = 3, kSize = 2;
inline const CaseInput kMarks{{kSteps, kRows}, 0, 0, 2};
// All marks are 0, so every step begins a sequence and no state is carried over.
inline const CaseInput kStartNowhere{{kSteps, kRows}, 0, 0};

inline std::string RecurrentText(const Recurrent& layer) {
  return std::string("type: '") + (layer.lstm ? "LSTM" : "RNN") +
         "' recurrent_param { num_output: 2 expose_hidden: " + (layer.exposed ? "true" : "false") +
         " }";
}

inline LayerCase RecurrentRow(std::string name, const Recurrent& layer) {
  LayerCase row{std::move(name),
                RecurrentText(layer),
                {{{kSteps, kRows, 3}, -1, 1}, layer.exposed ? kMarks : kStartNowhere},
                layer};
  if (layer.has_static) row.bottoms.push_back({{kRows, 2, 2}, -1, 1});
  row.without_gradient = {1};
  row.fixed_rows = true;  // the first axis of most bottoms is not the rows
  if (!layer.exposed) return row;
  for (int i = 0; i < (layer.lstm ? 2 : 1); ++i) {
    row.without_gradient.push_back(static_cast<int>(row.bottoms.size()));
    row.bottoms.push_back({{1, kRows, kSize}, -1, 1});
    row.tops_without_gradient.push_back(row.tops++);
  }
  return row;
}

// Returns the shapes of a layer's parameters, concatenated.
inline Shape ParamShapes(const std::string& type) {
  const LayerCase row{"case",
                      "type: '" + type + "' recurrent_param { num_output: 5 }",
                      {{{4, 3, 6}}, {{4, 3}}, {{3, 7}}},
                      nullptr};
  LayerRun run(row);
  Shape all;
  for (const auto& blob : run.layer().blobs()) {
    all.insert(all.end(), blob->shape().begin(), blob->shape().end());
  }
  return all;
}

}  // namespace hearth::caffe
