// Main function of the process that a Spark task starts. It reads a job from the control channel,
// executes it and reports events. It exits at once if the task's worker dies or any rank fails.
#pragma once

namespace hearth::trainer {

// Returns when the job is done. If the job fails, exits the process instead of returning, because
// threads may be waiting for rows or peers that never arrive.
void RunTrainerProcess(int control_fd);

}  // namespace hearth::trainer
