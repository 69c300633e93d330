#include "apps/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>

#include "apps/commands.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::program {
namespace {

// "-solver" is one long flag in the caffe program, but a row of short ones to CLI11.
std::string WithTwoDashes(const std::string& argument) {
  const bool single_dash_name = argument.size() > 2 && argument[0] == '-' && argument[1] != '-' &&
                                std::isalpha(static_cast<unsigned char>(argument[1]));
  return single_dash_name ? "-" + argument : argument;
}

// Of the command that was named, else of the program.
std::string HelpText(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app.help() : named.front()->help(app.get_name());
}

// CLI11 says of a misspelt command only that one is missing.
std::string MistakeText(const CLI::App& app, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error) {
  if (!app.get_subcommands().empty() || arguments.empty()) return error.what();
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  return fmt::format("there is no command '{}'{}; see hearth --help", arguments.front(),
                     caffe::DidYouMean(arguments.front(), known));
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& arguments) {
  CLI::App app("Hearth: Caffe networks, on this machine or in a Spark cluster", "hearth");
  app.require_subcommand(1);
  AddCommands(&app);
  std::vector<std::string> reversed;  // CLI11 takes arguments last first
  for (const std::string& argument : arguments) reversed.push_back(WithTwoDashes(argument));
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::fputs(HelpText(app).c_str(), stdout);
      return 0;
    }
    std::fprintf(stderr, "hearth: %s\n", MistakeText(app, arguments, error).c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace hearth::program
