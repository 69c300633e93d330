// Converts a training's events to named metrics by iteration, for an event file and a web page.
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

// Tags: OUTPUT/train and OUTPUT/test (with "/0", "/1" ... where an output has several values),
// run/smoothed_loss, run/learning_rate, run/images_per_s, run/invalid_rows, run/restarts,
// rankN/compute, rankN/rows_wait, rankN/ranks_wait (shares of the time); texts: run/messages. A
// "report" event, {"step", "values": {tag: number or null}}, names its tags and its step itself.
class RunRecord {
 public:
  // Effect of an event: metrics to add, and which to drop before.
  struct Change {
    std::optional<int64_t> back_to;  // the training rewound: drop later steps
    std::vector<Point> points;
  };

  // `folder` of the event file; if empty, none is written. Throws as EventWriter does.
  RunRecord(const std::string& folder, double now);

  // Any thread. Writes the event's metrics and returns them. If the file cannot be written, it ends
  // with a warning; the training continues. Other kinds of events are ignored.
  Change Take(const nlohmann::json& event, double now);
  // Completes the file; later events are not written.
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
  int64_t step_ = 0;  // the last reported step
  int64_t invalid_rows_ = 0, restarts_ = 0;
};

}  // namespace hearth::tensorboard
