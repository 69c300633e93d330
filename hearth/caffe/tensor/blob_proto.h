// Converts blobs to and from their representation in files.
#pragma once

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/blob.h"
#include "hearth/caffe/tensor/proto_shape.h"

namespace hearth::caffe {

// Returns true if both shapes are equal. A legacy shape may have additional leading ones.
bool HasShapeOf(const Blob& blob, const BlobProto& proto);

// Copies the data, and the diff if the file has one, into `blob`. Throws kDataLoss if the number of
// values does not match the blob's shape.
void ReadBlobData(const BlobProto& proto, Blob* blob);

// If `write_diff` is set, the diff is written even if the blob has none: as zeros, like in Caffe.
void WriteBlob(Blob& blob, bool write_diff, BlobProto* proto);

}  // namespace hearth::caffe
