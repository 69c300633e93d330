// Rows of a batch as tf.train.Example messages.
#pragma once

#include <functional>
#include <string_view>

#include "hearth/batch/batch_view.h"

namespace hearth::batch {

// Calls put(example) for each row: numbers and bools become int64 or float lists, strings and
// binaries bytes lists, lists the same; a null is a feature that is not there. Throws
// kInvalidArgument naming a column of another type.
void EncodeExamples(const BatchView& rows, const std::function<void(std::string_view)>& put);

}  // namespace hearth::batch
