// Records as text: fixed-width hexadecimal words, most significant digit first, single blanks.
#pragma once
#include <string>

#include "emu/oracle/layout.hpp"
#include "emu/oracle/record.hpp"

namespace numemu::oracle {

/// Appends one line for each record: its words in upper case as TestFloat has them, X where digits
/// are unknown, then " # CLASS" where it has one.
void append_text(const Layout&, const Records&, std::string& text);

/// Appends the words of one field of record i, separated by single blanks.
void append_words(const Field&, const Records&, int field, std::int64_t i, std::string& text);

}  // namespace numemu::oracle
