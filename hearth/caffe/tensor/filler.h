// Fills parameter blobs with initial values.
#pragma once

#include <memory>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/blob.h"
#include "hearth/caffe/tensor/random.h"

namespace hearth::caffe {

// Fills blob.data() with one of Caffe's fillers: constant, uniform, gaussian, xavier, msra,
// positive_unitball or bilinear. Throws kInvalidArgument for another type or an unsuitable shape.
void Fill(const FillerParameter& filler, Blob& blob, Random& random);
// Returns a new blob with values from the filler.
std::shared_ptr<Blob> FilledBlob(Shape shape, const FillerParameter& filler, Random& random);

}  // namespace hearth::caffe
