#include "hearth/caffe/net/net_filter.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_error.h"

namespace hearth::caffe {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsIncluded(const LayerParameter& layer, const NetState& state) {
  RequireInLayer(
      layer.name(), layer.include().empty() || layer.exclude().empty(), ErrorCode::kInvalidArgument,
      "layer '{}' ({}) has include and exclude rules; use one kind", layer.name(), layer.type());
  const auto meets = [&](const NetStateRule& rule) { return StateMeetsRule(state, rule); };
  if (layer.include().empty()) {
    return std::none_of(layer.exclude().begin(), layer.exclude().end(), meets);
  }
  return std::any_of(layer.include().begin(), layer.include().end(), meets);
}

}  // namespace

// All conditions of a rule must hold (Net::StateMeetsRule in Caffe). One matching include rule is
// enough to include a layer.
bool StateMeetsRule(const NetState& state, const NetStateRule& rule) {
  if (rule.has_phase() && rule.phase() != state.phase()) return false;
  if (rule.has_min_level() && state.level() < rule.min_level()) return false;
  if (rule.has_max_level() && state.level() > rule.max_level()) return false;
  const auto present = [&](const std::string& stage) { return Contains(state.stage(), stage); };
  return std::all_of(rule.stage().begin(), rule.stage().end(), present) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), present);
}

NetParameter FilterNet(const NetParameter& param) {
  NetParameter filtered = param;
  std::erase_if(*filtered.mutable_layer(),
                [&](const LayerParameter& layer) { return !IsIncluded(layer, param.state()); });
  return filtered;
}

}  // namespace hearth::caffe
