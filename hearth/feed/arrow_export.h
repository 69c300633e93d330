// Exports a batch through Arrow's C data interface.
#pragma once

#include <memory>

#include "hearth/feed/arrow_c_abi.h"
#include "hearth/feed/batch_view.h"

namespace hearth::feed {

// Fills both structs, which the receiver releases; they share the batch's bytes and keep it alive.
// In Arrow, a record batch is a struct array of its columns.
void ExportBatch(const std::shared_ptr<const BatchView>& batch, ArrowSchema* schema,
                 ArrowArray* array);

}  // namespace hearth::feed
