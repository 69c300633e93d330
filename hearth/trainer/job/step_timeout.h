#pragma once

namespace hearth::trainer {

// How long ranks wait for a rank that is behind: enough for a validation, or for rows that Spark is
// still computing. The rendezvous' heartbeat reports a lost rank much sooner.
inline constexpr double kStepTimeoutSeconds = 3600;

}  // namespace hearth::trainer
