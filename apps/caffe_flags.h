// The flags of the caffe program. It takes every one with every command, so these commands do too;
// the help of a command shows those that mean something to it.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>

#include "hearth/trainer/local_options.h"

namespace hearth::program {

// Adds all flags; `shown` names those in the command's help. The options belong to the callback.
std::shared_ptr<trainer::LocalOptions> AddCaffeFlags(CLI::App* command,
                                                     const std::set<std::string>& shown);

// Throws kInvalidArgument where the flag `name` was left out: "-name is missing: `what`".
void RequireFlag(const std::string& value, const char* name, const char* what);

}  // namespace hearth::program
