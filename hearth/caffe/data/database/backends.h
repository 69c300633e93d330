// The two database backends. The Open functions require a database of the backend's format at
// `path`; the Create functions require that `path` does not exist.
#pragma once

#include <memory>
#include <string>

#include "hearth/caffe/data/database/database.h"

namespace hearth::caffe {

std::unique_ptr<DatabaseCursor> OpenLmdb(const std::string& path);
std::unique_ptr<DatabaseWriter> CreateLmdb(const std::string& path);
std::unique_ptr<DatabaseCursor> OpenLevelDb(const std::string& path);
std::unique_ptr<DatabaseWriter> CreateLevelDb(const std::string& path);

}  // namespace hearth::caffe
