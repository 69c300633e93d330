// What a pickle can do to Python's own reader before any object of it is looked at.
#pragma once

#include <string_view>

namespace hearth::feed {

// Whether Python's reader may have the bytes: only what the picklers of protocols 2 to 5 write, no
// number in the memo beyond the pickle's size (the reader makes room for all below it), and no
// tuples or calls so deep in each other that a hash of them, for a dict's key say, ends the stack.
// Whom the pickle may call is not looked at. Any thread.
bool PickleIsSound(std::string_view pickle);

}  // namespace hearth::feed
