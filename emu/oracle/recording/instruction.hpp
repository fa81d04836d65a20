// A matrix instruction: its shape, its element types, what of A it keeps, its scales, and the GPUs
// that have it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// Functions of host and device where nvcc compiles them.
#ifdef __CUDACC__
#define NUMEMU_HD __host__ __device__
#else
#define NUMEMU_HD
#endif

namespace numemu::oracle::recording {

enum class Element : std::uint8_t {
#define NUMEMU_GPU_ELEMENT(name, ...) name,
#include "emu/oracle/recording/instructions/elements.def"
#undef NUMEMU_GPU_ELEMENT
};

/// Which codes are not finite numbers.
enum class Specials : std::uint8_t {
  ieee,      ///< the top exponent: infinities (mantissa 0) and NaN
  one_nan,   ///< only the code of all ones below the sign is NaN (e4m3)
  finite,    ///< none (fp6, fp4)
  integer,   ///< two's complement or unsigned
  exponent,  ///< a scale: all ones is NaN (ue8m0)
  nothing,   ///< no operand
};

/// A container holds one code in its low bits, except tf32 (the top 19 bits of a float32).
struct ElementInfo {
  const char* name;   ///< as in PTX and in the index of records
  int bits;           ///< of a code; tf32: 32, for the unit sees the whole register
  int bytes;          ///< of its container in arrays and records
  int exponent_bits;  ///< 0: integer
  int mantissa_bits;  ///< of integers: magnitude bits
  int bias;
  bool has_sign;
  Specials specials;
};

NUMEMU_HD constexpr ElementInfo info(Element element) {
  switch (element) {
#define NUMEMU_GPU_ELEMENT(name, ...) \
  case Element::name:                 \
    return {#name, __VA_ARGS__};
#include "emu/oracle/recording/instructions/elements.def"
#undef NUMEMU_GPU_ELEMENT
  }
  return {"none", 0, 0, 0, 0, 0, false, Specials::nothing};
}

NUMEMU_HD constexpr bool is_integer(Element e) { return info(e).specials == Specials::integer; }

/// The families; the name of each is the column `kind` of an index.
enum class Kind : std::uint8_t { mma, mmasp, mmabs, wgmma, wgmmasp, tc5, tc5sp, tc5bs, cvt };

/// What is kept of A: M elements of K, of which N stay, in units of `unit` elements.
enum class Sparsity : std::uint8_t {
  dense,
  two_of_four,    ///< 2:4: f16, bf16, 8 bits
  one_of_two,     ///< 1:2: tf32
  pairs_of_four,  ///< 4:8 in pairs: 4 bits
};

/// Compute capabilities (10 major + minor) from `first` to `last`; `exact`: the program is built
/// for that chip alone, as sm_90a, sm_100a and sm_120a are.
struct Chips {
  int first, last;
  bool exact;
};

struct Instruction {
  Kind kind;
  int m, n, k;  ///< logical; A keeps `kept()` of the k
  Element d, a, b, c;
  Sparsity sparsity;
  Element scale;  ///< none: not scaled
  int block;      ///< elements of K that share a scale; 0: not scaled
  bool satfinite;
  Chips chips;

  NUMEMU_HD constexpr int kept() const { return sparsity == Sparsity::dense ? k : k / 2; }
  /// Elements of K that share four bits of metadata.
  NUMEMU_HD constexpr int group() const {
    return sparsity == Sparsity::one_of_two ? 2 : sparsity == Sparsity::pairs_of_four ? 8 : 4;
  }
  /// Four-bit words of metadata in a row of A; 0: dense.
  NUMEMU_HD constexpr int groups() const { return sparsity == Sparsity::dense ? 0 : k / group(); }
  NUMEMU_HD constexpr int scales() const { return block == 0 ? 0 : k / block; }
};

/// The Instruction of a row of instructions/*.def.
#define NUMEMU_GPU_ROW_OF(kind, m, n, k, d, a, b, c, sparsity, scale, block, satfinite, first,    \
                          last, exact)                                                            \
  ::numemu::oracle::recording::Instruction {                                                      \
    ::numemu::oracle::recording::Kind::kind, m, n, k, ::numemu::oracle::recording::Element::d,    \
        ::numemu::oracle::recording::Element::a, ::numemu::oracle::recording::Element::b,         \
        ::numemu::oracle::recording::Element::c, ::numemu::oracle::recording::Sparsity::sparsity, \
        ::numemu::oracle::recording::Element::scale, block, satfinite,                            \
        ::numemu::oracle::recording::Chips {                                                      \
      first, last, exact                                                                          \
    }                                                                                             \
  }

const char* name(Kind);
/// As the index of records says it: m16n8k16.f32.f16.f16.f32, m16n8k32.s32.s8.s8.s32.satfinite (d,
/// a, b, c; wgmma and tcgen05 do not name C, whose type is D's).
std::string name(const Instruction&);

/// Kind and name: "mma m16n8k16.f32.f16.f16.f32".
std::string full_name(const Instruction&);

/// FNV-1a, 32 bits, of its kind and name or another text: what the
/// generator of inputs takes as tensor, so that rows may be added without changing the inputs of
/// others.
std::uint32_t tensor_of(const Instruction&);
std::uint32_t tensor_of(const std::string& text);

/// Every instruction of instructions.def in its order.
const std::vector<Instruction>& instructions();
/// By kind and name; -1: none.
int find_instruction(const std::string& kind, const std::string& instruction);

/// Whether a GPU of that compute capability has the instruction.
bool has(const Instruction&, int capability);

}  // namespace numemu::oracle::recording
