// A node's end of one feed task's connection: a ring of rows, a ring of results, and messages.
#pragma once

#include <atomic>
#include <utility>

#include "hearth/partitions/partition.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::partitions {

// Partitions follow each other on it, one at a time. `tell` must not throw: if the task is gone,
// there is nobody to tell.
class TaskLink {
 public:
  TaskLink(ring::RingEnd rows, ring::RingEnd results, bool from_afar, Tell tell)
      : from_afar(from_afar),
        tell(std::move(tell)),
        rows(std::move(rows)),
        results(std::move(results)) {}

  // Ends all waits of both sides; any thread. The connection is unusable afterwards.
  void Close() {
    closed_ = true;
    rows.Close();
    results.Close();
  }
  bool closed() const { return closed_; }

  const bool from_afar;  // the task is on another host
  const Tell tell;
  ring::RingReader rows;
  ring::RingWriter results;

 private:
  std::atomic<bool> closed_ = false;
};

}  // namespace hearth::partitions
