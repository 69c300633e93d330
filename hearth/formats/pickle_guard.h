// Rejects pickles that could harm Python's unpickler, before it creates any object.
#pragma once

#include <string_view>

namespace hearth::formats {

// Returns true if Python's unpickler may read the bytes. They must contain only opcodes that
// picklers of protocols 2 to 5 write, no memo index beyond the pickle's size (the unpickler
// allocates the memo up to the largest index), and no tuples or calls nested so deeply that hashing
// them, for example as a dict key, overflows the stack. Does not check which functions the pickle
// calls. Thread-safe.
bool PickleIsSound(std::string_view pickle);

}  // namespace hearth::formats
