// Rejects pickles that could harm Python's unpickler, before any object is made.
#pragma once

#include <string_view>

namespace hearth::formats {

// Returns true if the bytes may be given to Python's unpickler: only opcodes that picklers of
// protocols 2 to 5 write, no memo index beyond the pickle's size (the unpickler allocates the memo
// up to the largest index), and no tuples or calls nested so deeply that hashing them, as a dict
// key for example, overflows the stack. Does not check which functions the pickle calls.
// Thread-safe.
bool PickleIsSound(std::string_view pickle);

}  // namespace hearth::formats
