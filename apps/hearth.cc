// The hearth program: `hearth train`, `hearth test`, and the trainer of a Spark task.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "hearth/trainer/command_line.h"
#include "hearth/trainer/local_session.h"
#include "hearth/trainer/trainer_process.h"

namespace {

int Run(const hearth::trainer::CommandLine& line) {
  using Command = hearth::trainer::CommandLine::Command;
  switch (line.command) {
    case Command::kTrain:
      hearth::trainer::TrainLocally(line.local);
      return 0;
    case Command::kTest:
      hearth::trainer::TestLocally(line.local);
      return 0;
    case Command::kTrainer:
      return hearth::trainer::RunTrainerProcess(line.control_fd);
    case Command::kNone:
      break;
  }
  std::fprintf(line.exit_code == 0 ? stdout : stderr, "%s\n", line.message.c_str());
  return line.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(hearth::trainer::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth: %s\n", error.what());
    return 1;
  }
}
