// What a trainer process is told to do: the first line of its control channel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/settings/settings.h"

namespace hearth::trainer {

enum class Mode { kTrain, kFeatures, kTest };

// The inherited descriptors of one shared-memory ring, and how its rows come.
struct StreamFds {
  int ring_fd = -1;
  int signal_fd = -1;
  std::string spill_dir = {};  // the job's where empty
  // Set: the feeder sends the rows anew in each epoch, and they are not kept. By it their files can
  // be told from others.
  std::optional<uint64_t> files_hash = {};
};

struct Endpoint {
  std::string host;
  int port = 0;
};

// How many rows of an epoch may be unusable: at most `rows`, at most that `fraction`; -1: any.
struct BadRowLimit {
  int64_t rows = -1;
  double fraction = -1;
};

// A prototxt as the driver read it; `path` is for error messages and snapshot names.
struct PrototxtFile {
  std::string path;
  std::string text;
};

struct Job {
  Mode mode = Mode::kTrain;

  // The cluster. A process alone in its world needs no coordinator.
  std::string token;
  std::optional<Endpoint> coordinator;
  uint64_t generation = 0;
  int rank = 0;   // of this process
  int world = 1;  // processes
  std::string host = "localhost";
  std::string listen_host = "127.0.0.1";
  int threads = 1;  // compute threads of this process, shared by its devices

  settings::Settings settings;

  // The model.
  PrototxtFile solver;
  PrototxtFile net;
  std::vector<std::string> weights;
  std::string snapshot;  // .solverstate to resume from, or empty
  std::string run;       // the same for all generations: a later one goes on from its snapshots
  std::string datasets;  // versions and hashes of the rows, for seals
  std::string model;     // where rank 0 writes the final model, or empty
  std::vector<std::string> features;
  bool validate = false;
  // Of the net, added to the solver's own.
  int level = 0;
  std::vector<std::string> stages;
  // `hearth train`: tests also before the first iteration, and by the solver itself where no rows
  // are needed; -gpu. Not part of the JSON.
  bool local = false;
  std::vector<int> gpus;  // of -gpu; see ChooseDevice

  // The rows.
  std::optional<StreamFds> train, test, results;
  BadRowLimit max_bad_rows;
  std::string spill_dir = "/tmp";
  uint64_t seed = 0;

  int collective_world() const { return world * settings.devices; }
};

// Parses and checks one job. Throws kInvalidArgument naming the field, its value and what is
// allowed.
Job ParseJob(std::string_view json_text);

}  // namespace hearth::trainer
