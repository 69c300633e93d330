#include "apps/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "apps/command_words.h"
#include "apps/commands.h"
#include "apps/logging_flags.h"
#include "hearth/base/log_files.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::program {
namespace {

// Returns the help of the named command, else of the program.
std::string HelpText(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app.help() : named.front()->help(app.get_name());
}

// Without a command, "--help" and "--version" apply to the program.
bool NamesUnknownCommand(const CLI::App& app, const std::string& command) {
  return app.get_subcommands().empty() && !command.empty();
}

// For a misspelt command, CLI11 would only report that a command is missing.
std::string MistakeText(const CLI::App& app, const std::string& command,
                        const CLI::ParseError& error) {
  if (!NamesUnknownCommand(app, command)) {
    const bool missing = app.get_subcommands().empty() && error.get_name() == "RequiredError";
    return missing ? "a command is missing; see hearth --help" : error.what();
  }
  std::vector<std::string> known;
  for (const CLI::App* one : app.get_subcommands({})) known.push_back(one->get_name());
  return fmt::format("there is no command '{}'{}; see hearth --help", command,
                     caffe::DidYouMean(command, known));
}

int Fail(const std::string& mistake) {
  std::fprintf(stderr, "hearth: %s\n", mistake.c_str());
  log::WriteToFilesOnly(log::Level::kError, {__FILE__, __LINE__}, mistake);
  return 1;
}

// The trainer is not started by a user but by a Spark task, which has its own log.
bool IsTrainer(const std::vector<std::string>& arguments) {
  return !arguments.empty() && arguments.front() == "trainer";
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& arguments) {
  CLI::App app("Hearth: deep learning in Spark executors; Caffe networks on this machine, too",
               "hearth");
  app.footer(
      "CaffeOnSpark's tools are commands by their names: hearth Vocab --help.\n"
      "A training of Caffe on Spark: python -m hearth.caffeonspark -train ...");
  app.require_subcommand(1);
  app.set_version_flag("--version", "hearth " HEARTH_VERSION);
  AddCommands(&app);
  CommandWords read{.command = "trainer", .words = arguments, .logging = {}};
  try {
    if (!IsTrainer(arguments)) {
      read = ReadCommandLine(arguments, app);
      ApplyLoggingFlags(read.logging, read.command);
    }
    std::reverse(read.words.begin(), read.words.end());  // CLI11 expects arguments in reverse order
    app.parse(read.words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 || NamesUnknownCommand(app, read.command)) {
      return Fail(MistakeText(app, read.command, error));
    }
    const bool version = dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr;
    std::fputs(version ? "hearth " HEARTH_VERSION "\n" : HelpText(app).c_str(), stdout);
  } catch (const std::exception& error) {
    return Fail(error.what());
  }
  return 0;
}

}  // namespace hearth::program
