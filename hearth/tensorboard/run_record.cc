#include "hearth/tensorboard/run_record.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::tensorboard {
namespace {

using nlohmann::json;

// Larger outputs, such as one value per class or pixel, are skipped, because TensorBoard would show
// a chart for each value.
constexpr size_t kMaxValues = 16;
constexpr size_t kLongestText = 2000;

// JSON has no NaN, so it is sent as null.
double NumberOf(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void Add(std::string tag, double value, std::vector<Point>* points) {
  points->push_back({.tag = std::move(tag), .value = value});
}

void AddText(const std::string& text, std::vector<Point>* points) {
  if (!text.empty())
    points->push_back({.tag = "run/messages", .text = text.substr(0, kLongestText)});
}

// `outputs` contains a list of values for each output name.
void AddOutputs(const json& outputs, const std::string& net, std::vector<Point>* points) {
  for (const auto& [name, values] : outputs.items()) {
    if (values.size() > kMaxValues) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string which = values.size() > 1 ? fmt::format("/{}", i) : "";
      Add(fmt::format("{}/{}{}", name, net, which), NumberOf(values[i]), points);
    }
  }
}

Histogram HistogramOf(const json& event, double now) {
  return {.at = now,
          .step = event.at("iteration"),
          .tag = event.at("tag"),
          .least = event.at("least"),
          .most = event.at("most"),
          .sum = event.at("sum"),
          .sum_squares = event.at("sum_squares"),
          .counts = event.at("counts")};
}

std::vector<GraphNode> NodesOf(const json& event) {
  std::vector<GraphNode> nodes;
  for (const json& layer : event.at("layers")) {
    nodes.push_back({layer.at("name"), layer.at("type"), layer.at("inputs")});
  }
  return nodes;
}

}  // namespace

RunRecord::RunRecord(const std::string& folder, double now)
    : file_(folder.empty() ? nullptr : std::make_unique<EventWriter>(folder, now)),
      path_(file_ ? file_->path() : "") {}

RunRecord::Change RunRecord::Take(const json& event, double now) {
  const std::lock_guard lock(mutex_);
  Change change = ChangeOf(event, now);
  Write(change, event, now);
  return change;
}

RunRecord::Change RunRecord::ChangeOf(const json& event, double now) {
  const std::string kind = event.value("event", "");
  Change change;
  if (kind == "ready") {
    const int64_t iteration = event.value("iteration", int64_t{0});
    // A restart continues from an earlier snapshot and computes later points again.
    if (iteration < step_) change.back_to = iteration;
    step_ = iteration;
    // The number of restarts is added again, because rewinding drops its earlier points, too.
    if (restarts_ > 0) Add("run/restarts", static_cast<double>(restarts_), &change.points);
    if (change.back_to) invalid_rows_ = 0;
  } else if (kind == "progress") {
    TakeProgress(event, &change.points);
  } else if (kind == "validation") {
    step_ = event.value("iteration", step_);
    const int64_t net = event.value("net", int64_t{0});
    AddOutputs(event.at("outputs"), net ? fmt::format("test_{}", net) : "test", &change.points);
  } else if (kind == "report") {
    TakeReport(event, &change.points);
  } else if (kind == "rank") {
    const std::string rank = fmt::format("rank{}/", event.value("rank", 0));
    for (const char* share : {"compute", "rows_wait", "ranks_wait"}) {
      Add(rank + share, NumberOf(event.at(share)), &change.points);
    }
  } else if (kind == "restart") {
    restarts_ = event.value("generation", restarts_);
    Add("run/restarts", static_cast<double>(restarts_), &change.points);
    AddText(event.value("reason", ""), &change.points);
  } else if (kind == "note" || (kind == "log" && event.value("level", "") == "W")) {
    AddText(event.value("text", ""), &change.points);
  }
  for (Point& point : change.points) {
    point.at = now;
    point.step = kind == "report" ? event.at("step").get<int64_t>() : step_;
  }
  return change;
}

void RunRecord::TakeProgress(const json& event, std::vector<Point>* points) {
  step_ = event.value("iteration", step_);
  if (event.contains("outputs")) AddOutputs(event["outputs"], "train", points);
  Add("run/smoothed_loss", NumberOf(event.at("loss")), points);
  Add("run/learning_rate", NumberOf(event.at("lr")), points);
  Add("run/images_per_s", NumberOf(event.at("images_per_s")), points);
  const int64_t invalid_rows = event.value("invalid_rows", int64_t{0});
  // Adds a point only if the number has changed, because most trainings have no invalid rows.
  if (std::exchange(invalid_rows_, invalid_rows) != invalid_rows) {
    Add("run/invalid_rows", static_cast<double>(invalid_rows), points);
  }
}

void RunRecord::TakeReport(const json& event, std::vector<Point>* points) {
  // Ranks report at different times. The highest step determines whether a later "ready" event
  // rewinds.
  step_ = std::max(step_, event.at("step").get<int64_t>());
  for (const auto& [tag, value] : event.at("values").items()) Add(tag, NumberOf(value), points);
}

void RunRecord::Write(const Change& change, const json& event, double now) {
  // The rewind is written first, because readers drop the points before it but not those after it.
  if (change.back_to) Try([&] { file_->Rewind(*change.back_to, now); });
  const std::string kind = event.value("event", "");
  if (kind == "histogram") Try([&] { file_->Add(HistogramOf(event, now)); });
  if (kind == "net") Try([&] { file_->AddGraph(NodesOf(event), now); });
  for (const Point& point : change.points) Try([&] { file_->Add(point); });
  // Flushed after each event, so that charts are up to date and a killed driver's points are
  // preserved.
  Try([&] { file_->Flush(); });
}

void RunRecord::Finish() {
  const std::lock_guard lock(mutex_);
  Try([&] { file_->Finish(); });
  file_.reset();
}

template <typename Body>
void RunRecord::Try(Body body) {
  if (!file_) return;
  try {
    body();
  } catch (const Error& error) {
    // The first error ends the file, because its last record may be incomplete after a failed
    // write.
    file_.reset();
    log::Warning("TensorBoard's event file ends here: {}; the training continues", error.what());
  }
}

}  // namespace hearth::tensorboard
