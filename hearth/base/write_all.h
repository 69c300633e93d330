#pragma once

#include <string>
#include <string_view>

namespace hearth {

// Writes all bytes to a blocking descriptor. Throws the matching error of errno: "cannot write
// {name}: ...".
void WriteAll(int fd, std::string_view bytes, const std::string& name);

}  // namespace hearth
