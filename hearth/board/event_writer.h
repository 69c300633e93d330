// Event files as TensorBoard reads them: TFRecords, each with a message Event.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/board/histogram.h"
#include "hearth/board/point.h"
#include "hearth/formats/tfrecord.h"

namespace hearth::board {

// A node of a graph and the nodes whose outputs it takes.
struct GraphNode {
  std::string name, kind;
  std::vector<std::string> inputs;
};

// Not thread-safe. On a local disk a reader sees what was flushed; elsewhere the file has its name
// and its bytes when it is finished.
class EventWriter {
 public:
  // Makes a file of a new name in `folder`, a path or URI; a local folder is made, too. Throws what
  // stands in the way.
  EventWriter(const std::string& folder, double now);
  ~EventWriter();

  void Add(const Point& point);
  void Add(const Histogram& histogram);
  void AddGraph(std::span<const GraphNode> nodes, double at);
  // The training went back to after iteration `step`: readers forget what came after it.
  void GoBack(int64_t step, double at);
  // Throws what errno says.
  void Flush();
  void Finish();

  const std::string& path() const { return path_; }

 private:
  class File;
  void Put(double at, int64_t step, const std::string& rest);

  std::string path_;
  std::unique_ptr<formats::TfRecordWriter> records_;
  File* file_ = nullptr;  // where they go; theirs
};

}  // namespace hearth::board
