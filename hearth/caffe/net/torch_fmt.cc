// Torch brings headers of a newer fmt than the system's, and whatever includes torch is compiled
// with them. What these headers leave to a library is compiled here, once.
#ifndef FMT_HEADER_ONLY
#include <fmt/format-inl.h>

#include <locale>

namespace fmt::detail {

template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;

}  // namespace fmt::detail
#endif
