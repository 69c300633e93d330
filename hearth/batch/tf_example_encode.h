// Encodes rows of a batch as tf.train.Example messages.
#pragma once

#include <functional>
#include <string_view>

#include "hearth/batch/batch_view.h"

namespace hearth::batch {

// Calls put(example) for each row: numbers and bools become int64 or float lists, strings and
// binaries become bytes lists, and lists are encoded like their items; nulls are omitted. Throws
// kInvalidArgument, naming the column, for other types.
void EncodeExamples(const BatchView& rows, const std::function<void(std::string_view)>& put);

}  // namespace hearth::batch
