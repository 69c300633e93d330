// hearth.native._caffe.Solver and LearningRate.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "caffe_module.h"
#include "hearth/caffe/net_file.h"
#include "hearth/caffe/solver.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::Solver;
using caffe::SolverOptions;
using Copy = nb::ndarray<nb::numpy, float>;

void MakeSolver(Solver* self, const std::string& prototxt,
                std::function<void(caffe::Net*)> before_forward, uint64_t seed) {
  SolverOptions options;
  options.seed = seed;
  if (before_forward) {
    options.before_forward = [place = std::move(before_forward)](caffe::Net& net) { place(&net); };
  }
  new (self) Solver(caffe::ParseSolver(prototxt, "prototxt"), std::move(options));
}

// Copies, since a caller compares states of several iterations.
nb::list HistoryOf(Solver& solver) {
  nb::list history;
  const caffe::NetParams& params = solver.net().params();
  for (const at::Tensor& group : solver.history()) {
    for (size_t i = 0; i < params.learnable().size(); ++i) {
      const caffe::ParamLayout::Slice slice = params.layout().slices[i];
      const caffe::Shape& dims = params.learnable()[i].blob->shape();
      auto* values = new std::vector<float>(slice.count);
      nb::capsule owner(values,
                        [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
      const float* from = group.data_ptr<float>() + slice.offset;
      values->assign(from, from + slice.count);
      const std::vector<size_t> shape(dims.begin(), dims.end());
      history.append(nb::cast(Copy(values->data(), shape.size(), shape.data(), owner)));
    }
  }
  return history;
}

}  // namespace

void RegisterSolver(nb::module_& m) {
  nb::class_<Solver>(m, "Solver", "The training loop of one net. Not thread-safe.")
      .def("__init__", MakeSolver, "prototxt"_a, "before_forward"_a.none() = nb::none(),
           "seed"_a = 0,
           "`prototxt` is the text of a solver; `before_forward(net)` is called before every "
           "forward pass, to place the data of a net that is not fed by rows.")
      .def_prop_ro("net", &Solver::net, nb::rv_policy::reference_internal)
      .def_prop_ro("iter", &Solver::iteration)
      .def_prop_ro("lr", &Solver::learning_rate, "The learning rate of the next iteration.")
      .def_prop_ro("last_loss", &Solver::last_loss, "Of the last forward pass.")
      .def_prop_ro("history", HistoryOf, "Copies of the history arrays, group by group.")
      .def("step", &Solver::Step, "iterations"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("solve", &Solver::Solve, nb::call_guard<nb::gil_scoped_release>(), "Trains to max_iter.")
      .def("snapshot", &Solver::Snapshot, "Writes model and state; returns their names.")
      .def("restore", &Solver::Restore, "state"_a, "model"_a = "",
           "Goes on from a .solverstate and its .caffemodel.");

  nb::class_<caffe::LearningRate>(m, "LearningRate", "The learning rate policy of a solver.")
      .def(
          "__init__",
          [](caffe::LearningRate* self, const std::string& prototxt) {
            new (self) caffe::LearningRate(caffe::ParseSolver(prototxt, "prototxt"));
          },
          "prototxt"_a)
      .def("at", &caffe::LearningRate::At, "iteration"_a);
}

}  // namespace hearth::bindings
