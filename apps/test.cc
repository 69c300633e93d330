// hearth test
#include "apps/caffe_flags.h"
#include "apps/commands.h"
#include "apps/interpreter.h"
#include "hearth/trainer/local/local_session.h"

namespace hearth::program {

void AddTest(CLI::App* app) {
  CLI::App* test = app->add_subcommand("test", "score a trained net on its TEST data");
  const auto options =
      AddCaffeFlags(test, {"model", "weights", "iterations", "gpu", "level", "stage", "threads"});
  test->callback([options] {
    RequireFlag(options->model, "model", "give the net's prototxt");
    RequireFlag(options->weights.empty() ? "" : options->weights.front(), "weights",
                "give the trained .caffemodel");
    EnterInterpreterFor(*options);
    trainer::TestLocally(*options);
  });
}

}  // namespace hearth::program
