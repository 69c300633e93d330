// hearth time
#include "apps/caffe_flags.h"
#include "apps/commands.h"
#include "apps/interpreter.h"
#include "hearth/trainer/local/local_timing.h"

namespace hearth::program {

void AddTime(CLI::App* app) {
  CLI::App* time = app->add_subcommand("time", "measure how long each layer of a net takes");
  const auto options = AddCaffeFlags(
      time, {"model", "phase", "iterations", "gpu", "level", "stage", "weights", "threads"});
  time->callback([options] {
    RequireFlag(options->model, "model", "give the net's prototxt");
    EnterInterpreterFor(*options);
    trainer::TimeLocally(*options);
  });
}

}  // namespace hearth::program
