#include "apps/command_line.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "apps/commands.h"

namespace hearth::program {
namespace {

// "-solver" is one long flag in the caffe program, but a row of short ones to CLI11.
std::string WithTwoDashes(const std::string& argument) {
  const bool single_dash_name = argument.size() > 2 && argument[0] == '-' && argument[1] != '-' &&
                                std::isalpha(static_cast<unsigned char>(argument[1]));
  return single_dash_name ? "-" + argument : argument;
}

const CLI::App& NamedCommand(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : *named.front();
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
      std::fputs(NamedCommand(app).help().c_str(), stdout);
      return 0;
    }
    std::fprintf(stderr, "hearth: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace hearth::program
