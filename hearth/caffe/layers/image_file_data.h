// Base of Data and ImageData: minibatches of images with one number as label.
#pragma once

#include <string>

#include "hearth/caffe/data/pixels.h"
#include "hearth/caffe/layers/file_data.h"

namespace hearth::caffe {

// Base of Data and ImageData. All images of a minibatch must have the same size, which may differ
// between minibatches. An invalid image is reported to context.on_invalid_row and replaced by the
// next one; without on_invalid_row it is an error.
class ImageFileLayer : public FileDataLayer {
 public:
  ImageFileLayer(const LayerParameter& param, const NetContext& context);

 protected:
  // An image to load, and its label.
  struct Item {
    uint64_t number = 0;
    std::string name;   // for error messages
    std::string bytes;  // as stored; may be left empty for Read to fetch
    float label = 0;
  };
  // Returns the next item of this rank. Called on the loader's thread.
  virtual Item TakeItem() = 0;
  // Decodes the item's image, and may set its label. Called on any thread. Throws kDataLoss for an
  // invalid image.
  virtual Pixels Read(Item* item) const = 0;

  // Sets the tops' shapes by the first image; called in SetUp. If the image cannot be read, the
  // error contains its name.
  void ShapeTops(Item first, const Blobs& top) const;
  void LoadBatch(DataBatch* batch) override;
  const DataTransformer& transformer() const { return transformer_; }

 private:
  Shape ShapeOf(const Pixels& pixels) const;
  bool ReadInto(Item* item, int64_t row, DataBatch* batch, std::string* reason) const;

  const DataTransformer transformer_;
};

}  // namespace hearth::caffe
