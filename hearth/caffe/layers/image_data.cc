// ImageData: images from files in a list.
#include <algorithm>
#include <numeric>

#include "hearth/base/error.h"
#include "hearth/caffe/data/image_list.h"
#include "hearth/caffe/layers/image_file_data.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/image/decode.h"
#include "hearth/image/resize.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

class ImageDataLayer : public ImageFileLayer {
 public:
  using ImageFileLayer::ImageFileLayer;
  ~ImageDataLayer() override { StopLoading(); }

  void SetUp(const Blobs&, const Blobs& top) override {
    const ImageDataParameter& data = param_.image_data_param();
    Require(!data.source().empty(), ErrorCode::kInvalidArgument,
            "image_data_param has no source; set it to the list of images");
    Require((data.new_height() > 0) == (data.new_width() > 0), ErrorCode::kInvalidArgument,
            "new_height is {} and new_width is {}; set both, or neither", data.new_height(),
            data.new_width());
    set_batch_size(data.batch_size());
    images_ = ReadImageList(data.source());
    order_.resize(images_.size());
    if (data.rand_skip() > 0) {
      Require(data.rand_skip() <= images_.size(), ErrorCode::kInvalidArgument,
              "rand_skip {} is more than the {} images of {}", data.rand_skip(), images_.size(),
              data.source());
      // skipped_ is the same number on every rank, so that the ranks' stripes stay disjoint.
      skipped_ = Random(seed()).Below(data.rand_skip());
    }
    OrderEpoch(0);
    // Reads the first image of the first epoch, because its size determines the tops' shapes.
    ShapeTops(ItemOf(0), top);
  }

 protected:
  void Skip(int64_t items) override {
    for (; items > 0; --items) NextOfMine();
  }

  Item TakeItem() override { return ItemOf(NextOfMine()); }

  Pixels Read(Item* item) const override {
    const ImageDataParameter& data = param_.image_data_param();
    image::Image image =
        image::DecodeImage(storage::ReadFile(item->name),
                           data.is_color() ? image::ColorMode::kColor : image::ColorMode::kGray);
    if (data.new_height() > 0) image = image::Resize(image, data.new_height(), data.new_width());
    return Pixels(std::move(image));
  }

 private:
  uint64_t NextOfMine() {
    while (!IsMine(next_)) ++next_;
    return next_++;
  }

  // `number` keeps counting across epochs: it is a position in the sequence of all epochs' items.
  Item ItemOf(uint64_t number) {
    const uint64_t item_number = skipped_ + number;
    const uint64_t epoch = item_number / images_.size();
    if (epoch != ordered_epoch_) OrderEpoch(epoch);
    const ListedImage& listed = images_[order_[item_number % images_.size()]];
    return {number,
            param_.image_data_param().root_folder() + listed.path,
            {},
            static_cast<float>(listed.label)};
  }

  void OrderEpoch(uint64_t epoch) {
    // The order depends only on seed and epoch, so it is the same on all ranks and after a resume.
    std::iota(order_.begin(), order_.end(), 0);
    if (param_.image_data_param().shuffle()) {
      std::shuffle(order_.begin(), order_.end(), Random(MixSeed(seed(), epoch)).engine());
    }
    ordered_epoch_ = epoch;
  }

  std::vector<ListedImage> images_;
  std::vector<size_t> order_;  // of the images in ordered_epoch_
  uint64_t ordered_epoch_ = 0;
  uint64_t skipped_ = 0, next_ = 0;
};

}  // namespace

void RegisterImageData(LayerRegistry& registry) { registry.Add<ImageDataLayer>("ImageData"); }

}  // namespace hearth::caffe
