// The probes of an instruction in the containers of its operands.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/dots/dots.hpp"
#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// A dot whose result decides between rival descriptions.
struct Probe {
  std::string id;                ///< unique within the instruction: "Z1", "F150", "zero-sign.c"
  std::string question;          ///< id of a row of probes/questions.def
  std::vector<std::uint64_t> a;  ///< kept() codes
  std::vector<std::uint64_t> b;  ///< k codes
  std::uint64_t c = 0;
  std::vector<std::uint8_t> metadata;          ///< groups() words of four bits; empty: dense
  std::vector<std::uint8_t> scale_a, scale_b;  ///< scales() codes; empty: not scaled
};

/// The format of an element type; tf32 as the 19 bits that a unit sees. Not of Element::none.
const Format& element_format(Element);
Ports ports_of(const Instruction&);

/// A dot of ports_of() in containers; tf32 has zeros in its 13 low bits.
Probe probe_of(const Instruction&, const oracle::Dot&);

/// Every probe of the instruction, in a fixed order: those of its ports, and for tf32 some whose
/// low bits are set.
std::vector<Probe> probes(const Instruction&);

}  // namespace numemu::oracle::recording
