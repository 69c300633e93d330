// Parses the command line of the `hearth` program and runs the named subcommand.
#pragma once

#include <string>
#include <vector>

namespace hearth::program {

// Runs the subcommand that the arguments name. Flags are those of the caffe program
// (command_words.h), including the logging library's (logging_flags.h). Help is written to stdout.
// If the command line is invalid or the subcommand fails, writes one line to stderr and returns 1.
int RunCommandLine(const std::vector<std::string>& arguments);

}  // namespace hearth::program
