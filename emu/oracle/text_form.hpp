// Vector files as csv and JSON lines, turned into text while they are read.
#pragma once
#include <string>

#include "emu/oracle/text_reader.hpp"

namespace numemu::oracle {

/// Passes text on and turns csv and JSON lines into it, line by line: words separated by blanks,
/// the class after #. In JSON lines the fields must come in the order of the layout; names of csv
/// columns are passed over. Lines keep their numbers. Throws Error for an unfinished text in a line
/// of JSON; `name` is what it calls the file.
ByteReader as_text(std::string name, ByteReader bytes);

}  // namespace numemu::oracle
