// Parses the command line of the `hearth` program and runs the named subcommand.
#pragma once

#include <string>
#include <vector>

namespace hearth::program {

// Flags are those of the caffe program (command_words.h), including the logging library's
// (logging_flags.h). Help goes to stdout; an invalid command line, or an error of the subcommand,
// is one line on stderr and the result 1.
int RunCommandLine(const std::vector<std::string>& arguments);

}  // namespace hearth::program
