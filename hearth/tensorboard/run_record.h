// Converts a training's events to named metrics by iteration, which are written to an event file
// and shown on a web page.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hearth/tensorboard/event_writer.h"
#include "hearth/tensorboard/point.h"

namespace hearth::tensorboard {

// Converts the events of one training run to points and writes them to an event file. Tags of
// metrics: OUTPUT/train and OUTPUT/test (with "/0", "/1" ... if an output has several values),
// run/smoothed_loss, run/learning_rate, run/images_per_s, run/invalid_rows, run/restarts, and, as
// shares of the time, rankN/compute, rankN/rows_wait and rankN/ranks_wait. Tag of texts:
// run/messages. A "report" event, {"step", "values": {tag: number or null}}, contains its own tags
// and step.
class RunRecord {
 public:
  // The effect of an event: the points to drop, then the points to add.
  struct Change {
    // if set, the training was rewound, and points of later steps must be dropped
    std::optional<int64_t> back_to;
    std::vector<Point> points;
  };

  // Writes an event file in `folder`, or no file if `folder` is empty. Throws like EventWriter.
  RunRecord(const std::string& folder, double now);

  // Writes the event's metrics to the file and returns them. If writing fails, logs a warning and
  // stops writing; the training continues. Ignores other kinds of events. May be called from any
  // thread.
  Change Take(const nlohmann::json& event, double now);
  // Completes the file. Later events are not written to it.
  void Finish();

  // Path of the file; empty if there is none.
  std::string path() const { return path_; }

 private:
  Change ChangeOf(const nlohmann::json& event, double now);
  void TakeProgress(const nlohmann::json& event, std::vector<Point>* points);
  void TakeReport(const nlohmann::json& event, std::vector<Point>* points);
  void Write(const Change& change, const nlohmann::json& event, double now);
  template <typename Body>
  void Try(Body body);

  std::mutex mutex_;
  std::unique_ptr<EventWriter> file_;
  std::string path_;
  int64_t step_ = 0;  // the step reported last
  int64_t invalid_rows_ = 0, restarts_ = 0;
};

}  // namespace hearth::tensorboard
