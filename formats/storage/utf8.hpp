// Names of files are bytes; JSON, recipes and results are UTF-8.
#pragma once
#include <string>
#include <string_view>

namespace numemu {

/// The text with every byte that belongs to no UTF-8 character written as \xNN.
std::string utf8_text(std::string_view);

/// Text that a terminal shows and does not obey: white space as blanks, other control characters,
/// those of lines and directions too, and bytes that are not UTF-8 as '?'.
std::string harmless(std::string_view text);

/// Throws Error "WHAT: expected UTF-8, as results store it, found 'TEXT'": for a name that is used
/// again by what is stored.
void require_utf8(std::string_view what, std::string_view text);

}  // namespace numemu
