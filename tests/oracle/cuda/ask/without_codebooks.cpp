// Stands for formats/codebooks in the program that asks a GPU, which has no other library: none of
// its formats is a codebook.
#include <stdexcept>

#include "formats/codebooks/codebook.hpp"

namespace numemu {

CodebookPlace Codebook::locate(const Value&) const {
  throw std::logic_error("the program that asks a GPU has no codebooks");
}

}  // namespace numemu
