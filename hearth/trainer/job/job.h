// A trainer process's job: the first line of its control channel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/settings/settings.h"

namespace hearth::trainer {

enum class Mode { kTrain, kFeatures, kTest };

// The inherited descriptors of one shared-memory ring, and how its rows are sent.
struct StreamFds {
  int ring_fd = -1;
  int signal_fd = -1;
  std::string spill_dir = {};  // empty: Job::spill_dir
  // Hash that identifies the input files. If set, the feeder sends the rows again in each epoch,
  // and this process does not spool the rows.
  std::optional<uint64_t> files_hash = {};
};

// Address of a server.
struct Endpoint {
  std::string host;
  int port = 0;
};

// A prototxt as the driver read it; `path` is used in error messages and snapshot names.
struct PrototxtFile {
  std::string path;
  std::string text;
};

// The work of one trainer process. ParseJob checks it.
struct Job {
  Mode mode = Mode::kTrain;

  // The cluster. A single process needs no coordinator.
  std::string token;
  std::optional<Endpoint> coordinator;
  uint64_t generation = 0;
  int rank = 0;   // rank of this process
  int world = 1;  // number of processes
  std::string host = "localhost";
  std::string listen_host = "127.0.0.1";
  int threads = 1;  // compute threads of this process, shared by its devices

  settings::Settings settings;

  // The model.
  PrototxtFile solver;
  PrototxtFile net;
  std::vector<std::string> weights;
  std::string snapshot;  // .solverstate to resume from, or empty
  std::string run;       // same for all generations, so that a later one resumes from its snapshots
  std::string datasets;  // versions and hashes of the data sets, recorded in seals
  std::string model;     // file for the final model, written by rank 0; or empty
  std::vector<std::string> features;
  bool validate = false;
  // Level and stages of the net, added to the solver's.
  int level = 0;
  std::vector<std::string> stages;
  // Set by `hearth train` only, not by the JSON. If `local`, the solver itself tests nets that need
  // no rows, and also tests before the first iteration.
  bool local = false;
  std::vector<int> gpus;  // devices of the -gpu flag; see ChooseDevice

  // The rows.
  std::optional<StreamFds> train, test, results;
  std::string spill_dir = "/tmp";
  uint64_t seed = 0;

  int collective_world() const { return world * settings.devices; }
  settings::InvalidRowLimit invalid_row_limit() const {
    return settings::ParseInvalidRowLimit(settings.max_bad_records).value();
  }
};

// Parses and checks one job. Throws kInvalidArgument with the field, its value and the allowed
// values.
Job ParseJob(std::string_view json_text);

}  // namespace hearth::trainer
