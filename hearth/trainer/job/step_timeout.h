#pragma once

namespace hearth::trainer {

// Time that a rank may be behind the others: enough for a validation, or for rows that Spark still
// computes. A lost rank is reported much sooner, by the rendezvous' heartbeat.
inline constexpr double kStepTimeoutSeconds = 3600;

}  // namespace hearth::trainer
