// Commands that need a Python interpreter: the process becomes one.
#pragma once

#include <string>
#include <vector>

#include "hearth/trainer/local_options.h"

namespace hearth::program {

// Replaces this process by `python -m module arguments`. Throws where there is no interpreter.
[[noreturn]] void RunModule(const std::string& module, const std::vector<std::string>& arguments);

// Where a net of `options` has layers in Python, and this process cannot run them, the same command
// goes on in an interpreter. Files that cannot be read are left to the command to complain of.
void EnterInterpreterFor(const trainer::LocalOptions& options);

}  // namespace hearth::program
