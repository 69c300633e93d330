// The hearth program: the caffe program's commands and tools, and the trainer of a Spark task.
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/command_line.h"

namespace {

// libgomp's threads by default spin for milliseconds at every barrier: with another trainer on the
// same cores that made training 5 to 10 times slower. To sleep at once makes small nets slower by a
// third where the cores are free. A fraction of a millisecond costs little of either. The library
// reads its settings before main, so the program starts itself once more. Whoever sets one of them,
// as the launcher does, is obeyed and saves the second start.
void BoundSpinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  setenv("GOMP_SPINCOUNT", "10000", 1);
  char program[PATH_MAX] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) > 0) execv(program, argv);
}

}  // namespace

int main(int argc, char** argv) {
  BoundSpinning(argv);
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes becomes the error of the write that meets it
  return hearth::program::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc));
}
