// Messages on stderr, one line at a time: names from files are escaped, write errors ignored.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "formats/storage/utf8.hpp"

namespace numemu::cli {

/// At most `longest` bytes: words too long for their place, such as names and paths, keep their
/// ends, and then so does the whole.
std::string shortened(std::string text, std::size_t longest);

/// Writes to stderr as it is; a stream that is full or closed is not an error.
void write_talk(std::string_view text);

/// One line, harmless and shorter than 300 characters.
void say_line(std::string_view text);

template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  say_line(fmt::format(format, std::forward<T>(values)...));
}

}  // namespace numemu::cli
