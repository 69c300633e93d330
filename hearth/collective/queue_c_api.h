// A queue as the struct that plug-ins take (c_api.h).
#pragma once

#include "hearth/collective/c_api.h"
#include "hearth/collective/queue.h"

namespace hearth::collective {

// The queue outlives it. Who has the struct's address must have let go of it before this ends.
class QueueCApi {
 public:
  QueueCApi(Queue& queue, int rank, int world);
  QueueCApi(const QueueCApi&) = delete;
  QueueCApi& operator=(const QueueCApi&) = delete;

  const hearth_collective* get() const { return &api_; }

 private:
  static void Submit(void* self, const hearth_operation* operation, hearth_done done,
                     void* context);

  Queue& queue_;
  const hearth_collective api_;
};

}  // namespace hearth::collective
