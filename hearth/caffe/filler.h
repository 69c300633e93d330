// Initial values of parameter blobs.
#pragma once

#include "hearth/caffe/blob.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/random.h"

namespace hearth::caffe {

// Fills blob.data() by one of Caffe's fillers: constant, uniform, gaussian, xavier, msra,
// positive_unitball, bilinear. Throws kInvalidArgument for another type or an unfit shape.
void Fill(const FillerParameter& filler, Blob& blob, Random& random);

}  // namespace hearth::caffe
