// Log files as glog's --log_dir makes them, beside or instead of stderr. Any thread may call these.
#pragma once

#include <string>

#include "hearth/base/log.h"

namespace hearth::log {

// From now on every record goes to FOLDER/PROGRAM.HOST.USER.log.INFO.DATE-TIME.PID, and those of at
// least that severity to files with WARNING and ERROR in their names, which are made when they are
// needed; FOLDER/PROGRAM.INFO and so on are links to the newest. Throws kNotFound or another error
// if no file can be made there. An error while writing later is not reported.
void WriteFiles(const std::string& folder, const std::string& program);

// The folder that was given; empty where no files are written.
std::string FilesFolder();

// Records below `level` are not written to stderr (default: all are). Files and sink get them.
void SetLeastTerminalLevel(Level level);

// One record for the files only: stderr shows what ends a program in another form.
void WriteToFilesOnly(Level level, Place where, std::string_view text) noexcept;

}  // namespace hearth::log
