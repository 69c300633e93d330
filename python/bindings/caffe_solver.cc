// hearth.native._caffe.Solver and LearningRate.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caffe_device.h"
#include "caffe_module.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "new_array.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::Net;
using caffe::Solver;
using caffe::SolverOptions;
using caffe::SolverParameter;
using Copy = nb::ndarray<nb::numpy, float>;
using BeforeForwardCall = std::function<void(Net*)>;

// Python functions that a solver calls. The solver does not hold the GIL; the functions acquire it
// themselves.
class SolverCalls final : public caffe::SolverObserver {
 public:
  SolverCalls(BeforeForwardCall before_forward, int iter_size)
      : before_forward_(std::move(before_forward)), iter_size_(iter_size) {}

  void Add(std::function<void()> on_start, std::function<void()> on_gradients_ready) {
    on_start_.push_back(std::move(on_start));
    on_gradients_ready_.push_back(std::move(on_gradients_ready));
  }

  void BeforeForward(Net& net) override {
    // An iteration starts with the first of its iter_size forward passes.
    if (passes_++ % iter_size_ == 0) {
      for (const auto& call : on_start_) call();
    }
    if (before_forward_) before_forward_(&net);
  }
  void OnGradient() override {
    for (const auto& call : on_gradients_ready_) call();
  }
  // Raises KeyboardInterrupt for Ctrl-C after the current iteration of a long step.
  void OnIteration(const caffe::IterationReport&) override {
    const AcquiredGil gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  const BeforeForwardCall before_forward_;
  const int iter_size_;
  int passes_ = 0;
  std::vector<std::function<void()>> on_start_, on_gradients_ready_;
};

class CallingSolver final : public Solver {
 public:
  CallingSolver(SolverParameter param, SolverOptions options, std::unique_ptr<SolverCalls> calls)
      : Solver(std::move(param), std::move(options)), calls_(std::move(calls)) {}
  SolverCalls& calls() { return *calls_; }

 private:
  const std::unique_ptr<SolverCalls> calls_;
};

std::unique_ptr<CallingSolver> BuildSolver(SolverParameter param, SolverOptions options,
                                           BeforeForwardCall before_forward) {
  // `calls` is on the heap, because the options point to it before the solver owns it.
  auto calls = std::make_unique<SolverCalls>(std::move(before_forward), param.iter_size());
  options.observer = calls.get();
  options.train_context.device = options.test_context.device = ModeDevice();
  return std::make_unique<CallingSolver>(std::move(param), std::move(options), std::move(calls));
}

std::unique_ptr<CallingSolver> SolverOfText(const std::string& prototxt,
                                            BeforeForwardCall before_forward, uint64_t seed,
                                            const std::string& precision, bool keep_diffs) {
  SolverOptions options;
  options.seed = seed;
  options.train_context.precision = caffe::ParsePrecision(precision);
  options.test_context.precision = options.train_context.precision;
  options.train_context.share_diffs = !keep_diffs;
  return BuildSolver(caffe::ParseSolver(prototxt, "prototxt"), std::move(options),
                     std::move(before_forward));
}

std::unique_ptr<CallingSolver> SolverOfFile(const std::string& uri, const std::string& type,
                                            uint64_t seed) {
  SolverOptions options;
  options.seed = seed;
  options.solver_file = uri;
  SolverParameter param = caffe::ReadSolver(uri);
  if (!type.empty()) param.set_type(type);
  return BuildSolver(std::move(param), std::move(options), {});
}

nb::list TestNetsOf(nb::handle self) {
  nb::list nets;
  for (const auto& net : nb::cast<CallingSolver&>(self).test_nets()) {
    // The solver owns the net, so each reference to the net keeps the solver alive.
    nets.append(nb::cast(net.get(), nb::rv_policy::reference_internal, self));
  }
  return nets;
}

// Returns copies, because callers compare the states of several iterations.
nb::list HistoryOf(CallingSolver& solver) {
  nb::list history;
  const caffe::NetParams& params = solver.net().params();
  for (const caffe::Tensor& group : solver.history()) {
    for (size_t i = 0; i < params.learnable().size(); ++i) {
      const caffe::ParamLayout::Slice slice = params.layout().slices[i];
      const caffe::Shape& dims = params.learnable()[i].blob->shape();
      // One tensor per group contains the history of all parameters. Each slice gets the shape of
      // its parameter.
      const float* from = group.data_ptr() + slice.offset;
      history.append(nb::cast(ArrayOver<Copy>(std::vector<float>(from, from + slice.count),
                                              {dims.begin(), dims.end()})));
    }
  }
  return history;
}

void BindState(nb::class_<CallingSolver>& solver) {
  solver.def_prop_ro("net", &Solver::net, nb::rv_policy::reference_internal)
      .def_prop_ro("test_nets", TestNetsOf)
      .def_prop_ro("iter", &Solver::iteration, "Iterations done.")
      .def_prop_ro("lr", &Solver::learning_rate, "The learning rate of the next iteration.")
      .def_prop_ro("last_loss", &Solver::last_loss, "Loss of the last forward pass.")
      .def_prop_ro("history", HistoryOf, "Copies of the history arrays, group by group.")
      .def_prop_ro(
          "prototxt", [](const CallingSolver& self) { return caffe::WriteText(self.param()); },
          "The solver's parameters as prototxt.")
      .def("set_base_lr", &Solver::set_base_lr, "base_lr"_a,
           "Changes the base rate of the learning rate policy.")
      .def(
          "add_callback",
          [](CallingSolver& self, std::function<void()> on_start,
             std::function<void()> on_gradients_ready) {
            self.calls().Add(std::move(on_start), std::move(on_gradients_ready));
          },
          "on_start"_a, "on_gradients_ready"_a,
          "Calls on_start() before an iteration's first forward, on_gradients_ready() before its "
          "update.");
}

}  // namespace

void RegisterSolver(nb::module_& m) {
  nb::class_<CallingSolver> solver(m, "Solver", "The training loop of one net. Not thread-safe.");
  solver
      .def(nb::new_(&SolverOfText), "prototxt"_a, "before_forward"_a.none() = nb::none(),
           "seed"_a = 0, "precision"_a = "float32", "keep_diffs"_a = true,
           "`prototxt` is the text of a solver; `before_forward(net)` is called before every "
           "forward pass, to set the data of a net that is not fed by rows. `precision`, float32 "
           "or bf16, is the precision of convolutions and, on GPUs, inner products. Without "
           "`keep_diffs`, as in a training by the program, gradients of blobs are freed after a "
           "step.")
      .def_static(
          "read", SolverOfFile, "uri"_a, "type"_a = "", "seed"_a = 0,
          "Reads the solver of a prototxt file; `type`, if given, overrides the file's. `seed` "
          "applies if the file has no random_seed.")
      .def("step", &Solver::Step, "iterations"_a, ReleaseGil(),
           "Trains this many iterations, with the tests and snapshots that are due.")
      .def("solve", &Solver::Solve, ReleaseGil(), "Trains to max_iter.")
      .def("test_all", &Solver::TestAll, ReleaseGil(),
           "Runs every test net for its test_iter and logs the outputs' means.")
      .def("apply_update", nb::overload_cast<>(&Solver::ApplyUpdate), ReleaseGil(),
           "Updates the weights from the net's diffs and counts an iteration.")
      .def("snapshot", &Solver::Snapshot, ReleaseGil(),
           "Writes model and state; returns their names.")
      .def("restore", &Solver::Restore, "state"_a, "model"_a = "", ReleaseGil(),
           "Resumes from a .solverstate and its .caffemodel.");
  BindState(solver);

  nb::class_<caffe::LearningRate>(m, "LearningRate", "The learning rate policy of a solver.")
      .def(
          "__init__",
          [](caffe::LearningRate* self, const std::string& prototxt) {
            new (self) caffe::LearningRate(caffe::ParseSolver(prototxt, "prototxt"));
          },
          "prototxt"_a)
      .def("at", &caffe::LearningRate::At, "iteration"_a, "The rate of an iteration.");
}

}  // namespace hearth::bindings
