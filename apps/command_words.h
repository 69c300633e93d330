// Command lines in the conventions of gflags, made ready for CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace hearth::program {

struct CommandWords {
  std::string command;  // empty where none is named
  // The command, its flags as --name=value or --name, and then what is no flag.
  std::vector<std::string> words;
  std::map<std::string, std::string> logging;  // the logging library's flags, apart
};

// Flags may stand before the command, between its words and behind them, with one dash or two, as
// "-name value", "-name=value" or, for switches, "-name" and "-noname"; the last of a name counts;
// "--" ends them. "-flagfile a,b" stands for the lines of these files, each a flag; # begins a
// comment. What follows a command with flags of its own (CLI11's prefix_command) is left to it, but
// for logging flags. Throws kInvalidArgument for a flag that no command has, and what reading the
// files throws.
CommandWords ReadCommandLine(const std::vector<std::string>& arguments, const CLI::App& app);

}  // namespace hearth::program
