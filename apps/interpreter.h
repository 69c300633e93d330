// Restarts the process in a Python interpreter, for commands that need one.
#pragma once

#include <string>
#include <vector>

#include "hearth/trainer/local/local_options.h"

namespace hearth::program {

// Replaces this process by `python -m module arguments`. Throws if no interpreter can be started.
[[noreturn]] void RunModule(const std::string& module, const std::vector<std::string>& arguments);

// If a net of `options` has Python layers that this process cannot run, runs the same command in an
// interpreter. Ignores unreadable files, because the command reports them.
void EnterInterpreterFor(const trainer::LocalOptions& options);

}  // namespace hearth::program
