// hearth trainer: the process that a Spark task starts. Not listed in the help, because users do
// not start it.
#include "apps/commands.h"
#include "hearth/trainer/trainer_process.h"

namespace hearth::program {

void AddTrainer(CLI::App* app) {
  CLI::App* trainer = app->add_subcommand("trainer", "")->group("");
  const auto control_fd = std::make_shared<int>(-1);
  trainer->add_option("--control-fd", *control_fd)->required();
  trainer->callback([control_fd] { trainer::RunTrainerProcess(*control_fd); });
}

}  // namespace hearth::program
