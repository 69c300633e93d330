#include "apps/commands.h"

namespace hearth::program {

// Adds the commands in the order in which the help text lists them.
void AddCommands(CLI::App* app) {
  AddSparkTools(app);
  AddTrain(app);
  AddTest(app);
  AddTime(app);
  AddDeviceQuery(app);
  AddUpgrades(app);
  AddDatasetTools(app);
  AddPythonTools(app);
  AddTrainer(app);
}

}  // namespace hearth::program
