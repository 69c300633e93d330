// Converts command lines in gflags conventions to CLI11's.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace hearth::program {

// A command line in CLI11's form.
struct CommandWords {
  std::string command;  // empty if there is none
  // The command, its flags as --name=value or --name, then the other arguments.
  std::vector<std::string> words;
  std::map<std::string, std::string> logging;  // flags of the logging library
};

// Flags may be placed before the command, between its arguments and after them. They have one dash
// or two, and the form "-name value", "-name=value" or, for switches, "-name" and "-noname". If a
// flag is repeated, the last one counts. "--" ends the flags. "-flagfile a,b" inserts the lines of
// these files, each of which is a flag or a comment that starts with #. Arguments after a command
// that parses its own flags (CLI11's prefix_command) are passed through, except logging flags.
// Throws kInvalidArgument for an unknown flag, and the errors of reading the files.
CommandWords ReadCommandLine(const std::vector<std::string>& arguments, const CLI::App& app);

}  // namespace hearth::program
