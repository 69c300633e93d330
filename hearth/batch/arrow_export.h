// Exports a batch through Arrow's C data interface.
#pragma once

#include <memory>

#include "hearth/batch/arrow_c_abi.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {

// Fills both structs, which the receiver must release; they share the batch's bytes and keep it
// alive. In Arrow, a record batch is a struct array of its columns.
void ExportBatch(const std::shared_ptr<const BatchView>& batch, ArrowSchema* schema,
                 ArrowArray* array);

}  // namespace hearth::batch
