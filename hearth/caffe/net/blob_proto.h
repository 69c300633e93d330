// Blobs as they stand in files.
#pragma once

#include "hearth/caffe/net/blob.h"
#include "hearth/caffe/net/proto_shape.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Whether the shapes agree; a legacy shape may have leading ones that the blob has not.
bool HasShapeOf(const Blob& blob, const BlobProto& proto);

// Copies data, and diff where there is one, into `blob`, which keeps its shape. Throws kDataLoss
// when the number of values does not fit.
void ReadBlobData(const BlobProto& proto, Blob* blob);

// As in Caffe, a diff that is asked for is written even if there is none: zeros.
void WriteBlob(Blob& blob, bool write_diff, BlobProto* proto);

}  // namespace hearth::caffe
