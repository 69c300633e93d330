#include "hearth/caffe/tools/progress_log.h"

#include "hearth/base/log.h"

namespace hearth::caffe {

void ProgressLog::Done(int64_t items) {
  // Logs every 1000 items, like Caffe's tools, and at least every two seconds.
  const bool late = Clock::now() - last_ >= std::chrono::seconds(2);
  if (items / 1000 > said_ / 1000 || (late && items > said_)) Say(items);
}

// Logs the number of items, unless the previous message already reported it.
void ProgressLog::Finish(int64_t items) {
  if (items > said_) Say(items);
}

void ProgressLog::Say(int64_t items) {
  said_ = items;
  last_ = Clock::now();
  log::Info("Processed {} files.", items);
}

}  // namespace hearth::caffe
