// Which layers of a prototxt belong to a net of a given state.
#pragma once

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Keeps the layers whose include and exclude rules fit param.state. Throws kInvalidArgument for a
// layer that has both kinds of rules.
NetParameter FilterNet(const NetParameter& param);

// Whether `state` meets `rule`: phase, min_level, max_level, all of stage, none of not_stage.
bool StateMeetsRule(const NetState& state, const NetStateRule& rule);

}  // namespace hearth::caffe
