// Minibatches for training: the first epoch in arrival order, later epochs replayed from the spool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hearth/dataset/order/shuffled_order.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/spool.h"

namespace hearth::dataset {

// Options of SpoolSource.
struct ReplayOptions {
  bool shuffle = true;  // from the second epoch on, by seed and epoch number
  uint64_t seed = 0;
};

// A source of a spool's rows that delivers each row exactly once per epoch. Several sources may
// share one spool.
class SpoolSource : public MinibatchSource {
 public:
  SpoolSource(std::shared_ptr<Spool> spool, ReplayOptions options);

  int64_t Next(int64_t max_rows, Minibatch* out) override;
  // Waits until the spool is complete; throws the errors of Spool::WaitComplete.
  void NextEpoch() override;
  int64_t epoch() const override { return epoch_; }

 private:
  void TakeArriving(int64_t max_rows, Minibatch* out);
  static void Prefetch(const Minibatch& minibatch);

  std::shared_ptr<Spool> spool_;
  ReplayOptions options_;
  int64_t epoch_ = 0;
  // Used in the first epoch: position of the next row.
  size_t batch_ = 0;
  int64_t row_ = 0;
  // Used in later epochs.
  int64_t rows_ = 0;
  int64_t position_ = 0;
  std::optional<ShuffledOrder> order_;
};

}  // namespace hearth::dataset
