// Refuses pickles that could harm Python's own reader before any object is made.
#pragma once

#include <string_view>

namespace hearth::formats {

// Whether Python's reader may be given the bytes: only what picklers of protocols 2 to 5 write, no
// number in the memo beyond the pickle's size (the reader makes room for all below it), and no
// tuples or calls so deep in each other that a hash of them, for a dict's key say, ends the stack.
// Which functions the pickle calls is not checked here. Any thread.
bool PickleIsSound(std::string_view pickle);

}  // namespace hearth::formats
