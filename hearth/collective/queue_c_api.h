// A queue as the C struct for plug-ins (c_api.h).
#pragma once

#include "hearth/collective/c_api.h"
#include "hearth/collective/queue.h"

namespace hearth::collective {

// The hearth_collective struct of a queue. The queue outlives this object. Plug-ins must have
// stopped using the struct before this object is destroyed.
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
