// Runs the process that a Spark task starts: reads its job from the control channel, executes it,
// reports. Exits at once if the task's worker dies or any rank fails.
#pragma once

namespace hearth::trainer {

// Returns when the job is done; a failed job exits the process from inside, because its threads may
// be waiting for rows or peers that never arrive.
void RunTrainerProcess(int control_fd);

}  // namespace hearth::trainer
