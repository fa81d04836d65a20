// The description of a unit of one's own inside the first line of a file of vectors.
#pragma once
#include <string>
#include <string_view>

#include "emu/unit/unit.hpp"

namespace numemu::oracle {

/// " description={...}", the canonical form without blanks; empty for units that have a name of the
/// catalogue, and for what no line can hold: tables of products, names of files with blanks, more
/// than 3,000 letters.
std::string description_word(const unit::Unit&);
/// The text behind description= in such a line; empty where there is none.
std::string_view described_in(std::string_view header);

}  // namespace numemu::oracle
