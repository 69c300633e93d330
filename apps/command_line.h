// Reads the command line of the `hearth` program and runs the subcommand that it names.
#pragma once

#include <string>
#include <vector>

namespace hearth::program {

// Flags are as in the caffe program (command_words.h), the logging library's included
// (logging_flags.h). Help goes to stdout; a mistake, and an error of the subcommand, is one line on
// stderr and the result 1.
int RunCommandLine(const std::vector<std::string>& arguments);

}  // namespace hearth::program
