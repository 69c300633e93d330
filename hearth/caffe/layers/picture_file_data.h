// What Data and ImageData share: minibatches of pictures with one number as label.
#pragma once

#include <string>

#include "hearth/caffe/data/pixels.h"
#include "hearth/caffe/layers/file_data.h"

namespace hearth::caffe {

// Pictures of a minibatch must agree in size; minibatches need not. A picture that cannot be used
// is reported to context.on_bad_row and replaced by the next; where nobody listens, it is an error.
class PictureFileLayer : public FileDataLayer {
 public:
  PictureFileLayer(const LayerParameter& param, const NetContext& context);

 protected:
  struct Item {
    uint64_t number = 0;
    std::string name;   // in errors
    std::string bytes;  // as stored; may be left for Read to fetch
    float label = 0;
  };
  // The next item of this rank. On the loader's thread.
  virtual Item TakeItem() = 0;
  // On any thread. May set the label. Throws kDataLoss for what is no picture.
  virtual Pixels Read(Item* item) const = 0;

  // From SetUp: shapes as the first picture has them. Throws naming it where it cannot be read.
  void ShapeTops(Item first, const Blobs& top) const;
  void LoadBatch(DataBatch* batch) override;
  const DataTransformer& transformer() const { return transformer_; }

 private:
  Shape ShapeOf(const Pixels& pixels) const;
  bool ReadInto(Item* item, int64_t row, DataBatch* batch, std::string* reason) const;

  const DataTransformer transformer_;
};

}  // namespace hearth::caffe
