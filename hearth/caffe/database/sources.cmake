# Databases of records; included by hearth/caffe/CMakeLists.txt.
set(HEARTH_DATABASE_SOURCES
  database/database.cc
  database/leveldb.cc
  database/lmdb.cc
  database/lmdb_pages.cc
  database/read_only_env.cc)
set(HEARTH_DATABASE_TESTS
  database/database_test.cc
  database/lmdb_pages_test.cc)
set(HEARTH_DATABASE_DEPS Hearth::lmdb Hearth::leveldb)
