// Describes exceptions as the failure of a rank, which is the content of the driver's exception.
#pragma once

#include <exception>

#include "hearth/rendezvous/failure.h"

namespace hearth::trainer {

// Code, message, layer and iteration, as far as known, of any exception, not only of hearth::Error.
rendezvous::Failure DescribeException(const std::exception_ptr& exception);

}  // namespace hearth::trainer
