#include "apps/caffe_flags.h"

#include <limits>

#include "hearth/base/error.h"

namespace hearth::program {

std::shared_ptr<trainer::LocalOptions> AddCaffeFlags(CLI::App* command,
                                                     const std::set<std::string>& shown) {
  auto options = std::make_shared<trainer::LocalOptions>();
  const auto add = [&](const std::string& name, auto& value, const char* help) {
    CLI::Option* flag = command->add_option("--" + name, value, help);
    if (!shown.contains(name)) flag->group("");
    return flag;
  };
  add("solver", options->solver, "solver prototxt");
  add("model", options->model, "net prototxt");
  add("phase", options->phase, "TRAIN (default) or TEST")->check(CLI::IsMember({"TRAIN", "TEST"}));
  CLI::Option* snapshot = add("snapshot", options->snapshot, ".solverstate to resume from");
  add("weights", options->weights, "trained .caffemodel files, comma-separated")
      ->delimiter(',')
      ->excludes(snapshot);
  add("iterations", options->iterations, "number of iterations to run (default: 50)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  add("gpu", options->gpu,
      "CUDA devices, comma-separated, or all (default: train by solver_mode, else the CPU)");
  add("level", options->level, "level of the net's state");
  add("stage", options->stages, "stages of the net's state, comma-separated")->delimiter(',');
  add("sigint_effect", options->sigint_effect, "stop (default), snapshot or none");
  add("sighup_effect", options->sighup_effect, "snapshot (default), stop or none");
  add("threads", options->threads, "compute threads (default: one per core)");
  for (const settings::Setting& setting : settings::Table()) {
    if (!setting.in_program) continue;
    std::visit(
        [&](auto field) {
          CLI::Option* flag =
              command->add_option("--" + setting.name, options->settings.*field, setting.help);
          if (!setting.values.empty()) flag->check(CLI::IsMember(setting.values));
        },
        setting.field);
  }
  return options;
}

void RequireFlag(const std::string& value, const char* name, const char* what) {
  Require(!value.empty(), ErrorCode::kInvalidArgument, "-{} is missing: {}", name, what);
}

}  // namespace hearth::program
