// Test helpers for dataset: partition files with numbered rows.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/fd.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/dataset/dataset_rows.h"
#include "hearth/dataset/epoch_reader.h"
#include "hearth/dataset/partition_writer.h"

namespace hearth::dataset {

inline Fd UnnamedFile() {
  std::string path = ::testing::TempDir() + "/partition-XXXXXX";
  Fd file(::mkstemp(path.data()));
  EXPECT_TRUE(file.valid());
  ::unlink(path.c_str());
  return file;
}

inline Fd Duplicate(const Fd& file) { return Fd(::dup(file.get())); }

inline Committed WriteBatch(PartitionWriter& writer, batch::BatchBuilder& rows) {
  ArrowSchema schema;
  ArrowArray array;
  rows.Export(&schema, &array);
  return writer.Write(schema, array);
}

// One attempt to write a partition, whose rows are first, first + 1, ... in a column "n".
class Attempt {
 public:
  Attempt(int64_t partition, int64_t number)
      : partition_(partition), number_(number), file_(UnnamedFile()), writer_(Duplicate(file_)) {}

  Attempt& Write(int32_t first, int32_t count) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), first);
    batch::BatchBuilder rows;
    rows.AddInt32("n", values);
    return Write(rows);
  }
  Attempt& Write(batch::BatchBuilder& rows) {
    committed_ = WriteBatch(writer_, rows);
    return *this;
  }
  // Announces everything written so far.
  void Announce(DatasetRows& rows, bool complete = false) {
    rows.ApplyAnnouncement({.partition = partition_,
                            .attempt = number_,
                            .file = announced_ ? Fd() : Duplicate(file_),
                            .committed = committed_,
                            .complete = complete,
                            .hash = complete ? writer_.hash() : 0});
    announced_ = true;
  }

  const Fd& file() const { return file_; }
  Committed committed() const { return committed_; }
  uint64_t hash() const { return writer_.hash(); }

 private:
  int64_t partition_, number_;
  Fd file_;
  PartitionWriter writer_;
  Committed committed_;
  bool announced_ = false;
};

// Values of the column "n".
inline std::vector<int64_t> NumbersOf(const SelectedRows& rows) {
  std::vector<int64_t> numbers;
  for (const auto& [batch, row] : rows.refs) {
    numbers.push_back(batch->column("n").AsInt64(row));
  }
  return numbers;
}

inline std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> numbers(static_cast<size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

}  // namespace hearth::dataset
