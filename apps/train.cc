// hearth train
#include "apps/caffe_flags.h"
#include "apps/commands.h"
#include "apps/interpreter.h"
#include "hearth/trainer/local/local_session.h"

namespace hearth::program {

void AddTrain(CLI::App* app) {
  CLI::App* train = app->add_subcommand("train", "train a net by its solver prototxt");
  const auto options = AddCaffeFlags(train, {"solver", "snapshot", "weights", "gpu", "level",
                                             "stage", "sigint_effect", "sighup_effect", "threads"});
  train->callback([options] {
    RequireFlag(options->solver, "solver", "give the solver's prototxt");
    EnterInterpreterFor(*options);
    trainer::TrainLocally(*options);
  });
}

}  // namespace hearth::program
