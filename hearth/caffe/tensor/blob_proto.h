// Converts blobs from and to their form in files.
#pragma once

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/blob.h"
#include "hearth/caffe/tensor/proto_shape.h"

namespace hearth::caffe {

// Returns true if the shapes agree; a legacy shape may have leading ones.
bool HasShapeOf(const Blob& blob, const BlobProto& proto);

// Copies data, and diff if there is one, into `blob`, which keeps its shape. Throws kDataLoss if
// the number of values differs.
void ReadBlobData(const BlobProto& proto, Blob* blob);

// As in Caffe, a requested diff is written even if there is none, as zeros.
void WriteBlob(Blob& blob, bool write_diff, BlobProto* proto);

}  // namespace hearth::caffe
