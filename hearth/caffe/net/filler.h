// Fills parameter blobs with initial values.
#pragma once

#include "hearth/caffe/net/blob.h"
#include "hearth/caffe/net/random.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Fills blob.data() by one of Caffe's fillers: constant, uniform, gaussian, xavier, msra,
// positive_unitball, bilinear. Throws kInvalidArgument for another type or an unsuitable shape.
void Fill(const FillerParameter& filler, Blob& blob, Random& random);

}  // namespace hearth::caffe
