// Compiles fmt from its headers, because Debian has only a shared library.
#include <fmt/format-inl.h>

namespace fmt {
namespace detail {
template locale_ref::locale_ref(const std::locale& loc);
template std::locale locale_ref::get<std::locale>() const;
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>,
                         locale_ref);
namespace dragonbox {
template auto to_decimal(float x) noexcept -> decimal_fp<float>;
template auto to_decimal(double x) noexcept -> decimal_fp<double>;
}  // namespace dragonbox
}  // namespace detail
}  // namespace fmt
