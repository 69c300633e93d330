// Base of Data and ImageData: minibatches of images with one number as label.
#pragma once

#include <string>

#include "hearth/caffe/data/pixels.h"
#include "hearth/caffe/layers/file_data.h"

namespace hearth::caffe {

// Images of a minibatch must have the same size; minibatches need not. An invalid image is reported
// to context.on_invalid_row and replaced by the next; without on_invalid_row it is an error.
class ImageFileLayer : public FileDataLayer {
 public:
  ImageFileLayer(const LayerParameter& param, const NetContext& context);

 protected:
  // An image to load, and its label.
  struct Item {
    uint64_t number = 0;
    std::string name;   // in errors
    std::string bytes;  // as stored; may be left empty for Read to fetch
    float label = 0;
  };
  // The next item of this rank. On the loader's thread.
  virtual Item TakeItem() = 0;
  // On any thread. May set the label. Throws kDataLoss for an invalid image.
  virtual Pixels Read(Item* item) const = 0;

  // From SetUp: sets shapes by the first image. Throws naming it if it cannot be read.
  void ShapeTops(Item first, const Blobs& top) const;
  void LoadBatch(DataBatch* batch) override;
  const DataTransformer& transformer() const { return transformer_; }

 private:
  Shape ShapeOf(const Pixels& pixels) const;
  bool ReadInto(Item* item, int64_t row, DataBatch* batch, std::string* reason) const;

  const DataTransformer transformer_;
};

}  // namespace hearth::caffe
