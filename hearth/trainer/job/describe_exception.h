// Converts an exception to the failure of a rank, from which the driver creates its exception.
#pragma once

#include <exception>

#include "hearth/rendezvous/failure.h"

namespace hearth::trainer {

// Returns the code, message, layer and iteration of an exception, as far as they are known. Accepts
// any exception, not only hearth::Error.
rendezvous::Failure DescribeException(const std::exception_ptr& exception);

}  // namespace hearth::trainer
