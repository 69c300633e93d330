// The hearth program: `hearth train`, `hearth test`, and the trainer of a Spark task.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
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

// Executors share their cores, and libgomp's threads by default spin for milliseconds at every
// barrier: with another trainer on the same cores that made training 5 to 10 times slower. The
// library reads its settings before main, so the program starts itself once more. Whoever sets one
// of them, as the launcher does, is obeyed and saves the second start.
void BoundSpinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  char program[PATH_MAX] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) > 0) execv(program, argv);
}

}  // namespace

int main(int argc, char** argv) {
  BoundSpinning(argv);
  try {
    return Run(hearth::trainer::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth: %s\n", error.what());
    return 1;
  }
}
