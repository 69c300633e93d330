// Writes event files for TensorBoard: TFRecords that each contain an Event message.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/formats/tfrecord.h"
#include "hearth/tensorboard/histogram.h"
#include "hearth/tensorboard/point.h"

namespace hearth::tensorboard {

// A node of a graph, and the names of the nodes whose outputs it reads.
struct GraphNode {
  std::string name, kind;
  std::vector<std::string> inputs;
};

// Writes one event file. Not thread-safe. On a local disk, readers can see data after Flush(). A
// remote file does not exist before Finish().
class EventWriter {
 public:
  // Creates a file with a new name in `folder`, which is a path or URI and is created if it is
  // local. Throws if that fails.
  EventWriter(const std::string& folder, double now);
  ~EventWriter();

  void Add(const Point& point);
  void Add(const Histogram& histogram);
  void AddGraph(std::span<const GraphNode> nodes, double at);
  // Makes readers drop all points after iteration `step`.
  void Rewind(int64_t step, double at);
  // Writes the buffered records. Throws if that fails.
  void Flush();
  void Finish();

  const std::string& path() const { return path_; }

 private:
  class File;
  void Put(double at, int64_t step, const std::string& rest);

  std::string path_;
  std::unique_ptr<formats::TfRecordWriter> records_;
  File* file_ = nullptr;  // where records_ writes; owned by records_
};

}  // namespace hearth::tensorboard
