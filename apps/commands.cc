#include "apps/commands.h"

namespace hearth::program {

// In the order of the help text.
void AddCommands(CLI::App* app) {
  AddTrain(app);
  AddTest(app);
  AddTrainer(app);
}

}  // namespace hearth::program
