// Selects the layers of a prototxt for a given net state.
#pragma once

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Keeps the layers whose include and exclude rules match param.state. Throws kInvalidArgument for a
// layer that has both kinds of rules.
NetParameter FilterNet(const NetParameter& param);

// Returns true if `state` matches `rule`: it has the rule's phase, a level from min_level to
// max_level, all stages in `stage`, and none in `not_stage`.
bool StateMeetsRule(const NetState& state, const NetStateRule& rule);

}  // namespace hearth::caffe
