// The table of conversions and their inputs.
#include "emu/oracle/recording/conversion.hpp"

#include <algorithm>
#include <iterator>

#include "emu/oracle/recording/data.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::uint32_t kSign = 0x80000000U;

/// float32 codes that no number of a target leads to: signs, subnormals, the ends of each range,
/// NaN with payloads high, low, quiet and signalling. tf32 cuts a payload below bit 13 to nothing.
constexpr std::uint32_t kSpecials[] = {
    0x00000000, 0x00000001, 0x00000002, 0x00001000, 0x00001fff, 0x00002000, 0x003fffff, 0x00400000,
    0x00400001, 0x007fffff, 0x00800000, 0x00800001, 0x3f800000, 0x7f000000, 0x7f000001, 0x7f7f7fff,
    0x7f7f8000, 0x7f7fe000, 0x7f7fefff, 0x7f7ff000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7f800fff,
    0x7f801000, 0x7f801fff, 0x7f802000, 0x7f803fff, 0x7f810000, 0x7fa00000, 0x7fbfffff, 0x7fc00000,
    0x7fc00001, 0x7fe00000, 0x7fffe000, 0x7fffefff, 0x7ffff000, 0x7fffffff};
static_assert(2 * std::size(kSpecials) == kSpecialInputs);

/// significand * 2^exponent as a float32 code, for what float32 holds exactly: at most 24 bits.
std::uint32_t float32_code(std::uint32_t significand, int exponent) {
  if (significand == 0) return 0;
  while (significand < 1U << 23 && exponent > -149) {
    significand <<= 1;
    --exponent;
  }
  // Below the leading bit of a normal number the exponent field is 0: the significand alone.
  if (significand < 1U << 23) return significand;
  return (static_cast<std::uint32_t>(exponent + 149) << 23) + significand;
}

/// Places a code and the float32 values beside it, in both signs.
void append_around(std::vector<std::uint32_t>& in, std::uint32_t code) {
  for (const std::uint32_t sign : {0U, kSign})
    for (const std::uint32_t x : {code - 1, code, code + 1})
      if (x < kSign) in.push_back(x | sign);
}

/// Each number of the format and the midpoint above it. The codes above the largest number are read
/// as numbers too: there lie the thresholds of overflow.
void append_grid(std::vector<std::uint32_t>& in, Element e) {
  const ElementInfo f = info(e);
  const std::uint32_t codes = 1U << (f.exponent_bits + f.mantissa_bits);
  const int least = 1 - f.bias - f.mantissa_bits;
  for (std::uint32_t code = 0; code <= codes; ++code) {
    const auto field = static_cast<int>(code >> f.mantissa_bits);
    const std::uint32_t fraction = code & ((1U << f.mantissa_bits) - 1);
    const bool subnormal = field == 0 && f.specials != Specials::exponent;
    const int exponent =
        f.specials == Specials::exponent ? field - f.bias : least + std::max(field - 1, 0);
    const std::uint32_t significand = subnormal ? fraction : fraction | 1U << f.mantissa_bits;
    const int top = f.mantissa_bits + exponent;
    if (top >= 128) break;  // beyond float32
    append_around(in, float32_code(significand, exponent));
    append_around(in, float32_code(2 * significand + 1, exponent - 1));
  }
}

/// The same code with an exponent in the range of the format, or one or two binades outside.
std::uint32_t in_range(Element e, std::uint32_t code) {
  const ElementInfo f = info(e);
  const int top = (1 << f.exponent_bits) - f.bias, least = 1 - f.bias - f.mantissa_bits;
  const int first = std::max(least - 2 + 127, 0), last = std::min(top + 1 + 127, 255);
  const int field = first + static_cast<int>(code >> 23 & 0xffU) % (last - first + 1);
  return (code & 0x807fffffU) | static_cast<std::uint32_t>(field) << 23;
}

std::vector<std::uint32_t> float32_inputs(const Conversion& c, std::uint64_t seed) {
  std::vector<std::uint32_t> grid;
  append_grid(grid, c.d);
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());

  std::vector<std::uint32_t> in;
  for (const std::uint32_t x : kSpecials) {
    in.push_back(x);
    in.push_back(x | kSign);
  }
  in.insert(in.end(), grid.begin(), grid.end());
  const std::uint32_t tensor = tensor_of(std::string("cvt ") + c.name);
  for (std::uint32_t i = 0; i < kRandomInputs / 4; ++i) {
    const PhiloxBlock block = philox(seed, {{i, 0, tensor, kVectorStream}});
    for (int word = 0; word < 4; ++word)
      in.push_back(word % 2 == 0 ? block.word[word] : in_range(c.d, block.word[word]));
  }
  return in;
}

}  // namespace

const std::vector<Conversion>& conversions() {
  static const std::vector<Conversion> kTable = {
#define NUMEMU_GPU_CONVERSION(id, text, d, a, rounding, satfinite, relu, form, first, last, exact, \
                              toolkit)                                                             \
  Conversion{text,      Element::d, Element::a,    CvtRounding::rounding,                          \
             satfinite, relu,       CvtForm::form, Chips{first, last, exact},                      \
             toolkit},
#include "emu/oracle/recording/conversions.def"
#undef NUMEMU_GPU_CONVERSION
  };
  return kTable;
}

int find_conversion(const std::string& name) {
  const std::vector<Conversion>& table = conversions();
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].name == name) return static_cast<int>(i);
  return -1;
}

std::vector<std::uint32_t> conversion_inputs(const Conversion& c, std::uint64_t seed) {
  if (c.a == Element::f32) return float32_inputs(c, seed);
  std::vector<std::uint32_t> in(std::size_t{1} << info(c.a).bits);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i);
  return in;
}

}  // namespace numemu::oracle::recording
