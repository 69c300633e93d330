// Flags of the caffe program. Like that program, every command accepts all flags; its help lists
// only those that have an effect.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>

#include "hearth/trainer/local/local_options.h"

namespace hearth::program {

// Adds all flags to the command; its help lists those in `shown`. The command's callback must own
// the returned options.
std::shared_ptr<trainer::LocalOptions> AddCaffeFlags(CLI::App* command,
                                                     const std::set<std::string>& shown);

// Throws kInvalidArgument with the message "-`name` is missing: `what`" if the flag was omitted.
void RequireFlag(const std::string& value, const char* name, const char* what);

}  // namespace hearth::program
