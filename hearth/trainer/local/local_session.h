// Training and testing on this machine without Spark, as in the caffe program.
#pragma once

#include "hearth/trainer/local/local_options.h"

namespace hearth::trainer {

// Both functions log to stderr in Caffe's format and throw hearth::Error. Parquet sources are read
// by a child process, through the same ring as rows from Spark.

// Trains as the solver specifies; SIGINT and SIGHUP have the effects that the options name.
void TrainLocally(const LocalOptions& options);

// Runs the TEST net for options.iterations minibatches and logs its outputs and their means.
void TestLocally(const LocalOptions& options);

}  // namespace hearth::trainer
