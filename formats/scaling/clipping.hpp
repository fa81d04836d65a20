// What the scale rule floor, the default under powers of two, clips of formats whose largest
// element is near a power of two.
#pragma once
#include <string>
#include <string_view>

#include "formats/blocks/block_format.hpp"

namespace numemu {

/// Under floor the largest magnitude of a block lands between 2^e and 2^(e+1), 2^e <= largest
/// element < 2^(e+1): 2^(e+1) over the largest element. 4/3 of FP4 (6), 8/7 of E4M3 (448); 2 where
/// the largest element is a power of two (nf4, posits), so that floor clips nearly every block.
double floor_overreach(const BlockFormat&);
/// A sentence where that rule is floor and clips blocks by more than the formats of OCP MX do:
/// from 1.6 on. "" else.
std::string clipping_note(const BlockFormat&, std::string_view rule);

}  // namespace numemu
