// Flags of the caffe program. It accepts all flags for every command, and so do these commands; the
// help of a command lists those with an effect.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>

#include "hearth/trainer/local/local_options.h"

namespace hearth::program {

// Adds all flags; `shown` selects those in the command's help. The callback must own the options.
std::shared_ptr<trainer::LocalOptions> AddCaffeFlags(CLI::App* command,
                                                     const std::set<std::string>& shown);

// Throws kInvalidArgument if the flag `name` was omitted: "-name is missing: `what`".
void RequireFlag(const std::string& value, const char* name, const char* what);

}  // namespace hearth::program
