// What a shell offers behind the words of a command line, from the options that commands declare.
#pragma once
#include <string>
#include <vector>

#include "cli/options.hpp"

namespace numemu::cli {

/// Names of formats and their aliases; names of units, and without their vendors.
std::vector<std::string> format_words();
std::vector<std::string> unit_words();

/// `words`: those behind the program's name up to the one at the cursor, which may be empty. First
/// a line "words", "files" or "folders", what the shell adds by itself, then a line "WORD<TAB>HELP"
/// for each that begins as the last word does.
std::string completions(const Program&, const std::vector<std::string>& words);

/// The script that a shell reads: "bash" or "zsh".
std::string completion_script(const std::string& shell);

}  // namespace numemu::cli
