#include "apps/commands.h"

namespace hearth::program {

// In the order of the help text.
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
