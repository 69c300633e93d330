// The life of the process that a Spark task starts: takes its job from the control channel, does
// it, reports. Ends at once when the task's worker goes away or any rank fails.
#pragma once

namespace hearth::trainer {

// Returns when the job is done; a job that failed ends the process from inside, because its threads
// may be waiting for rows or peers that never come.
void RunTrainerProcess(int control_fd);

}  // namespace hearth::trainer
