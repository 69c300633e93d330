// The flags of the `hearth` program, which are those of the caffe program: -flag and --flag alike.
#pragma once

#include <string>
#include <vector>

namespace hearth::trainer {

struct LocalOptions {
  std::string solver;                // train
  std::string model;                 // test: the net's prototxt
  std::string snapshot;              // .solverstate to resume from
  std::vector<std::string> weights;  // .caffemodel files
  int iterations = 50;               // test
  int level = 0;
  std::vector<std::string> stages;
  std::string sigint_effect = "stop";
  std::string sighup_effect = "snapshot";
  int threads = 0;  // compute threads; 0: one per core
};

struct CommandLine {
  enum class Command { kTrain, kTest, kTrainer, kNone };
  Command command = Command::kNone;
  LocalOptions local;
  int control_fd = -1;
  // Set when the program has only to print this (help, version, a usage error) and end.
  std::string message;
  int exit_code = 0;
};

// Never throws: wrong flags become a one-line message and exit code 1.
CommandLine ParseCommandLine(const std::vector<std::string>& arguments);

}  // namespace hearth::trainer
