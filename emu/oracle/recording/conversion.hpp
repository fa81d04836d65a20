// The conversions cvt: what is converted to what, how it rounds, the inputs it is asked, and
// records of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// exact: every value of the source is a value of the target. rs adds the bits of random_bits().
enum class CvtRounding : std::uint8_t { exact, rn, rz, rna, rp, rs };

/// Registers of the instruction, result first: f float32, r 32 bits, h 16 bits, b 8 bits; the last
/// r of rs holds random bits.
enum class CvtForm : std::uint8_t {
  h_f,
  r_f,
  f_h,
  h_h,
  r_ff,
  h_ff,
  b_ff,
  h_r,
  r_h,
  r_b,
  r_ffr,
  r_ffffr,
  h_ffffr
};

struct Conversion {
  const char* name;  ///< "rn.satfinite.e4m3x2.f32": the PTX text after "cvt."
  Element d, a;
  CvtRounding rounding;
  bool satfinite, relu;
  CvtForm form;
  Chips chips;
  int toolkit;  ///< 100 major + minor of the first CUDA release that has it

  /// Values that one instruction converts; each sits in `slot` bits of the packed register.
  NUMEMU_HD constexpr int lanes() const {
    switch (form) {
      case CvtForm::h_f:
      case CvtForm::r_f:
      case CvtForm::f_h:
      case CvtForm::h_h:
        return 1;
      case CvtForm::r_ffffr:
      case CvtForm::h_ffffr:
        return 4;
      default:
        return 2;
    }
  }
};

/// Bits of one code in a packed register: six-bit codes fill bytes.
NUMEMU_HD constexpr int slot(Element e) { return info(e).bits == 6 ? 8 : info(e).bits; }

/// An answer holds the code from each lane, lowest first, in 32 / lanes() bits: lane l was asked
/// with the input in lane l and the next input in the others, so that a lane that behaves
/// differently, or reads another, is seen.
NUMEMU_HD constexpr int answer_bits(const Conversion& c) { return 32 / c.lanes(); }
NUMEMU_HD constexpr std::uint32_t lane_code(const Conversion& c, std::uint32_t answer, int lane) {
  const int bits = answer_bits(c);
  return bits == 32 ? answer : answer >> (bits * lane) & ((1U << bits) - 1);
}

/// The random bits of rs: a function of the input, so that a record needs only input and output.
/// Every field of the register that a lane might read holds the same bits: 13 of float16 and 16 of
/// the others twice, the 8 of e2m1 four times (PTX ISA, "cvt", rbits).
NUMEMU_HD constexpr std::uint32_t random_bits(const Conversion& c, std::uint32_t in) {
  std::uint32_t x = (in ^ in >> 16) * 0x7feb352dU;  // lowbias32 of C. Wellons, two steps
  x = (x ^ x >> 15) * 0x846ca68bU >> 16;
  if (c.d == Element::e2m1) return (x & 0xffU) * 0x01010101U;
  if (c.d == Element::f16) x &= 0x1fffU;
  return x | x << 16;
}

/// Every row of conversions.def, in its order.
const std::vector<Conversion>& conversions();
/// By name; -1: none.
int find_conversion(const std::string& name);
/// The chip has it (compute capability as 10 major + minor).
inline bool has(const Conversion& c, int chip) {
  return c.chips.first <= chip && chip <= c.chips.last;
}

constexpr std::size_t kSpecialInputs = 76, kRandomInputs = std::size_t{1} << 20;  ///< of float32
/// The inputs, each in the low bits of a word: 4 to 16 bits exhaustively; float32: kSpecialInputs
/// specials, every number of the target and every midpoint with their neighbours, then
/// kRandomInputs random codes.
std::vector<std::uint32_t> conversion_inputs(const Conversion&, std::uint64_t seed);

/// A record is the input, then the output of the lowest lane, each in its container.
inline int record_bytes(const Conversion& c) { return info(c.a).bytes + info(c.d).bytes; }
constexpr int kRecordedBytes = 12000;  ///< of the records of a conversion, at most

}  // namespace numemu::oracle::recording
