// Node's end of a feed task's connection: a ring of rows, a ring of results, and messages.
#pragma once

#include <atomic>
#include <utility>

#include "hearth/feed/partition.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::feed {

// A feed task's connection, which carries one partition at a time. `send` must not throw, even if
// the task is gone.
class TaskLink {
 public:
  TaskLink(ring::RingEnd rows, ring::RingEnd results, bool remote, Send send)
      : remote(remote), send(std::move(send)), rows(std::move(rows)), results(std::move(results)) {}

  // Ends all waits of both sides. Any thread may call it. The connection is unusable afterwards.
  void Close() {
    closed_ = true;
    rows.Close();
    results.Close();
  }
  bool closed() const { return closed_; }

  const bool remote;  // the task is on another host
  const Send send;
  ring::RingReader rows;
  ring::RingWriter results;

 private:
  std::atomic<bool> closed_ = false;
};

}  // namespace hearth::feed
