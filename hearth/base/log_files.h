// Log files as created by glog's --log_dir, in addition to or instead of stderr. Any thread may
// call these.
#pragma once

#include <string>

#include "hearth/base/log.h"

namespace hearth::log {

// Writes every later record to FOLDER/PROGRAM.HOST.USER.log.INFO.DATE-TIME.PID, warnings and errors
// also to a file with WARNING in its name, and errors also to one with ERROR; both are created on
// demand. FOLDER/PROGRAM.INFO etc. link to the newest files. Throws kNotFound or another error if
// no file can be created. Later write errors are not reported.
void WriteFiles(const std::string& folder, const std::string& program);

// The folder passed to WriteFiles; empty if no files are written.
std::string FilesFolder();

// Records below `level` are not written to stderr (default: all are). Files and the sink still
// receive them.
void SetLeastTerminalLevel(Level level);

// Writes a record to the files only; for fatal errors that stderr shows in another form.
void WriteToFilesOnly(Level level, Location where, std::string_view text) noexcept;

}  // namespace hearth::log
