#include "hearth/trainer/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

namespace hearth::trainer {
namespace {

// "-solver" is one long flag in the caffe program, but a row of short ones to CLI11.
std::string WithTwoDashes(const std::string& argument) {
  const bool single_dash_name = argument.size() > 2 && argument[0] == '-' && argument[1] != '-' &&
                                std::isalpha(static_cast<unsigned char>(argument[1]));
  return single_dash_name ? "-" + argument : argument;
}

void AddNetFlags(CLI::App* command, LocalOptions* local) {
  command->add_option("--weights", local->weights, "trained .caffemodel files, by comma")
      ->delimiter(',');
  command->add_option("--level", local->level, "level of the net's state");
  command->add_option("--stage", local->stages, "stages of the net's state, by comma")
      ->delimiter(',');
  command->add_option("--threads", local->threads, "compute threads (default: one per core)");
  // Accepted so that existing command lines run: the solver runs on the CPU.
  command->add_option("--gpu", "ignored: this version computes on the CPU");
  command->add_option("--phase", "ignored: train trains, test tests");
}

CLI::App* AddTrain(CLI::App* app, LocalOptions* local) {
  CLI::App* train = app->add_subcommand("train", "train a net as its solver prototxt says");
  train->add_option("--solver", local->solver, "solver prototxt")->required();
  auto* snapshot = train->add_option("--snapshot", local->snapshot, ".solverstate to go on from");
  AddNetFlags(train, local);
  snapshot->excludes("--weights");
  train->add_option("--sigint_effect", local->sigint_effect, "stop, snapshot or none");
  train->add_option("--sighup_effect", local->sighup_effect, "snapshot, stop or none");
  return train;
}

CLI::App* AddTest(CLI::App* app, LocalOptions* local) {
  CLI::App* test = app->add_subcommand("test", "score a trained net on its TEST data");
  test->add_option("--model", local->model, "net prototxt")->required();
  test->add_option("--iterations", local->iterations, "minibatches to run")
      ->check(CLI::PositiveNumber);
  AddNetFlags(test, local);
  test->get_option("--weights")->required();
  return test;
}

}  // namespace

CommandLine ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  CLI::App app("Hearth: Caffe networks, on this machine or in a Spark cluster", "hearth");
  app.require_subcommand(1);
  CLI::App* train = AddTrain(&app, &line.local);
  CLI::App* test = AddTest(&app, &line.local);
  CLI::App* trainer = app.add_subcommand("trainer", "")->group("");  // for Spark tasks only
  trainer->add_option("--control-fd", line.control_fd)->required();

  std::vector<std::string> reversed;  // CLI11 takes arguments last first
  for (const std::string& argument : arguments) reversed.push_back(WithTwoDashes(argument));
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    CLI::App* shown = train->parsed() ? train : test->parsed() ? test : &app;
    line.message = help ? shown->help() : std::string("hearth: ") + error.what();
    line.exit_code = help ? 0 : 1;
    return line;
  }
  line.command = train->parsed()  ? CommandLine::Command::kTrain
                 : test->parsed() ? CommandLine::Command::kTest
                                  : CommandLine::Command::kTrainer;
  return line;
}

}  // namespace hearth::trainer
