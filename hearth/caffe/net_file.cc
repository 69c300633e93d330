#include "hearth/caffe/net_file.h"

#include <array>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

// `input` with its shapes becomes a layer in front of the others.
void UpgradeInputs(NetParameter* net, const std::string& name) {
  const int inputs = net->input_size();
  const bool has_dims = net->input_dim_size() > 0;
  if (inputs > 0 && (has_dims || net->input_shape_size() > 0)) {
    Require(has_dims ? net->input_dim_size() == 4 * inputs : net->input_shape_size() == inputs,
            ErrorCode::kInvalidArgument,
            "{}: {} input(s) need {} input_dim or {} input_shape, found {} and {}", name, inputs,
            4 * inputs, inputs, net->input_dim_size(), net->input_shape_size());
    LayerParameter layer;
    layer.set_name("input");
    layer.set_type("Input");
    *layer.mutable_top() = net->input();
    for (int i = 0; i < inputs; ++i) {
      BlobShape* shape = layer.mutable_input_param()->add_shape();
      if (!has_dims) *shape = net->input_shape(i);
      for (int j = 4 * i; has_dims && j < 4 * (i + 1); ++j) shape->add_dim(net->input_dim(j));
    }
    net->mutable_layer()->insert(net->mutable_layer()->begin(), std::move(layer));
  }
  net->clear_input();
  net->clear_input_dim();
  net->clear_input_shape();
}

}  // namespace

void UpgradeNet(NetParameter* net, const std::string& name) {
  Require(net->layers().empty(), ErrorCode::kUnimplemented,
          "{}: it uses the old `layers` format (V0 or V1), which is not read yet; convert it with "
          "Caffe's upgrade_net_proto_text or upgrade_net_proto_binary",
          name);
  UpgradeInputs(net, name);
  for (LayerParameter& layer : *net->mutable_layer()) {
    // Old files give BatchNorm's three statistics a learning rate of 0 by hand; the layer does it.
    if (layer.type() == "BatchNorm" && layer.param_size() == 3) layer.clear_param();
  }
}

void UpgradeSolver(SolverParameter* solver, const std::string& name) {
  constexpr std::array<const char*, 6> kTypes = {"SGD",     "Nesterov", "AdaGrad",
                                                 "RMSProp", "AdaDelta", "Adam"};
  if (solver->has_solver_type()) {
    Require(!solver->has_type(), ErrorCode::kInvalidArgument,
            "{}: it has type and the old solver_type; remove solver_type", name);
    solver->set_type(kTypes[solver->solver_type()]);
    solver->clear_solver_type();
  }
  if (solver->has_net_param()) UpgradeNet(solver->mutable_net_param(), name + " net_param");
  if (solver->has_train_net_param()) {
    UpgradeNet(solver->mutable_train_net_param(), name + " train_net_param");
  }
  for (NetParameter& net : *solver->mutable_test_net_param()) {
    UpgradeNet(&net, name + " test_net_param");
  }
}

NetParameter ParseNet(std::string_view text, const std::string& name) {
  NetParameter net;
  ParseText(text, name, &net);
  UpgradeNet(&net, name);
  return net;
}

SolverParameter ParseSolver(std::string_view text, const std::string& name) {
  SolverParameter solver;
  ParseText(text, name, &solver);
  UpgradeSolver(&solver, name);
  return solver;
}

NetParameter ReadNet(const std::string& uri) { return ParseNet(storage::ReadFile(uri), uri); }

SolverParameter ReadSolver(const std::string& uri) {
  return ParseSolver(storage::ReadFile(uri), uri);
}

}  // namespace hearth::caffe
