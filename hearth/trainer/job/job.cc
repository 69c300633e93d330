#include "hearth/trainer/job/job.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hearth/base/error.h"
#include "hearth/trainer/job/job_fields.h"

namespace hearth::trainer {
namespace {

constexpr int64_t kMaxInt = INT32_MAX;

Mode ParseMode(const JobFields& fields) {
  const std::string mode = fields.RequiredString("mode");
  if (mode == "train") return Mode::kTrain;
  if (mode == "features") return Mode::kFeatures;
  if (mode == "test") return Mode::kTest;
  fields.Refuse("mode", "\"train\", \"features\" or \"test\"");
}

std::optional<StreamFds> ParseStream(const JobFields& parent, const char* name) {
  auto fields = parent.Object(name);
  if (!fields) return std::nullopt;
  StreamFds fds{static_cast<int>(fields->Integer("ring_fd", -1, 0, kMaxInt)),
                static_cast<int>(fields->Integer("signal_fd", -1, 0, kMaxInt)),
                fields->String("spill_dir", "")};
  if (fields->Has("files_hash")) fds.files_hash = fields->Unsigned("files_hash", 0);
  if (fds.ring_fd < 0) fields->Refuse("ring_fd", "a file descriptor");
  if (fds.signal_fd < 0) fields->Refuse("signal_fd", "a file descriptor");
  fields->RejectUnknownFields();
  return fds;
}

PrototxtFile ParsePrototxt(const JobFields& parent, const char* name) {
  auto fields = parent.Object(name);
  if (!fields) return {};
  PrototxtFile file{fields->String("path", name), fields->String("text", "")};
  fields->RejectUnknownFields();
  return file;
}

// Each row of the table has a pointer to the setting's member, which has one of three types.
void ParseSettings(const JobFields& fields, settings::Settings* out) {
  for (const settings::Setting& setting : settings::Table()) {
    const char* name = setting.name.c_str();
    if (const auto* flag = std::get_if<bool settings::Settings::*>(&setting.field)) {
      out->** flag = fields.Bool(name, out->**flag);
    } else if (const auto* number = std::get_if<int settings::Settings::*>(&setting.field)) {
      out->** number =
          static_cast<int>(fields.Integer(name, out->**number, setting.least, setting.most));
    } else {
      std::string& text = out->*std::get<std::string settings::Settings::*>(setting.field);
      text = fields.String(name, text);
      const auto& values = setting.values;
      if (!values.empty() && std::find(values.begin(), values.end(), text) == values.end()) {
        fields.Refuse(name, fmt::format("\"{}\"", fmt::join(values, "\" or \"")));
      }
      if (setting.allows && !setting.allows(text)) fields.Refuse(name, setting.must_be);
    }
  }
}

void ParseCluster(const JobFields& fields, Job* job) {
  job->token = fields.String("token", "");
  if (auto coordinator = fields.Object("coordinator")) {
    job->coordinator = Endpoint{coordinator->RequiredString("host"),
                                static_cast<int>(coordinator->Integer("port", 0, 1, 65535))};
    if (job->coordinator->port == 0) coordinator->Refuse("port", "a port");
    coordinator->RejectUnknownFields();
    if (job->token.empty()) fields.Refuse("token", "the cluster's token");
  }
  job->generation = fields.Unsigned("generation", 0);
  job->world = static_cast<int>(fields.Integer("world", 1, 1, 1 << 16));
  job->rank = static_cast<int>(fields.Integer("rank", 0, 0, job->world - 1));
  job->host = fields.String("host", job->host);
  job->listen_host = fields.String("listen_host", job->listen_host);
  job->threads = static_cast<int>(fields.Integer("threads", 1, 1, 4096));
  if (job->world > 1 && !job->coordinator) {
    fields.Refuse("coordinator", "the coordinator's address, because \"world\" is above 1");
  }
}

void ParseModel(const JobFields& fields, Job* job) {
  job->solver = ParsePrototxt(fields, "solver");
  job->net = ParsePrototxt(fields, "net");
  job->weights = fields.Strings("weights");
  job->snapshot = fields.String("snapshot", "");
  // "resume" repeats what "snapshot" implies, so that a driver that intends to resume but sends no
  // snapshot does not train from the start.
  if (fields.Bool("resume", !job->snapshot.empty()) == job->snapshot.empty()) {
    fields.Refuse("resume", "true with a \"snapshot\" to resume from, else false");
  }
  job->run = fields.String("run", "");
  job->datasets = fields.String("datasets", "");
  job->model = fields.String("model", "");
  job->features = fields.Strings("features");
  job->validate = fields.Bool("validate", false);
  job->level = static_cast<int>(fields.Integer("level", 0, INT32_MIN, INT32_MAX));
  job->stages = fields.Strings("stages");
}

void ParseRows(const JobFields& fields, Job* job) {
  if (auto streams = fields.Object("streams")) {
    job->train = ParseStream(*streams, "train");
    job->test = ParseStream(*streams, "test");
    streams->RejectUnknownFields();
  }
  job->results = ParseStream(fields, "results");
  job->spill_dir = fields.String("spill_dir", job->spill_dir);
  job->seed = fields.Unsigned("seed", 0);
}

// Checks the fields that every job requires, and those that the mode requires.
void CheckMode(const JobFields& fields, const Job& job) {
  if (job.net.text.empty()) fields.Refuse("net", "an object with the net's \"text\"");
  if (job.mode == Mode::kTrain) {
    if (job.solver.text.empty()) fields.Refuse("solver", "an object with the solver's \"text\"");
    if (!job.train) fields.Refuse("streams", "an object with the \"train\" stream to train on");
    if (job.validate && !job.test) {
      fields.Refuse("streams", "an object with the \"test\" stream, because \"validate\" is true");
    }
    return;
  }
  if (!job.test) fields.Refuse("streams", "an object with the \"test\" stream");
  if (!job.results) fields.Refuse("results", "an object with the results' ring");
  if (job.mode == Mode::kFeatures && job.features.empty()) {
    fields.Refuse("features", "a list of blob names");
  }
}

}  // namespace

Job ParseJob(std::string_view json_text) {
  // Parses without exceptions, because their messages would quote the input.
  const auto json = nlohmann::json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  // The text may contain the token, so it is not quoted.
  Require(json.is_object(), ErrorCode::kInvalidArgument,
          "the first line of the control channel ({} bytes) must be the job as one JSON object",
          json_text.size());
  const JobFields fields(json, "");
  Job job;
  job.mode = ParseMode(fields);
  ParseCluster(fields, &job);
  ParseModel(fields, &job);
  ParseRows(fields, &job);
  ParseSettings(fields, &job.settings);
  fields.RejectUnknownFields();
  CheckMode(fields, job);
  return job;
}

}  // namespace hearth::trainer
