// Operands in other containers: the products that a unit forms of them are those of the unit.
#include "emu/oracle/replay/record_edits.hpp"

#include "emu/oracle/recording/philox.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"

namespace numemu::oracle {
namespace {

using recording::Batch;
using recording::Element;
using recording::Instruction;

/// Single dots of random codes: one in four is a zero, two in four are subnormal or nearly so. No C
/// is zero, and no code infinite or NaN.
Batch small_numbers(const Instruction& i, int count) {
  Batch batch(i, count);
  std::uint32_t drawn = 0;
  const auto word = [&] { return recording::philox(5, {{drawn++, 1, 2, 3}}).word[0]; };
  const auto fill = [&](std::vector<std::uint8_t>& codes, Element e, bool zeros) {
    const recording::ElementInfo type = info(e);
    const std::uint64_t sign = std::uint64_t{1} << (type.bits - 1);
    const std::uint64_t fraction = (std::uint64_t{1} << type.mantissa_bits) - 1;
    for (std::size_t at = 0; at < codes.size(); at += static_cast<std::size_t>(type.bytes)) {
      const std::uint32_t kind = word() % 4, low = word();
      std::uint64_t code = (low & (kind == 1 ? fraction : 2 * fraction + 1)) | 1;
      if (kind == 2) code = low & (sign - 1) & ~(std::uint64_t{3} << (type.bits - 3));
      if (zeros && kind == 0) code = 0;
      recording::store_code(&codes[at], type.bytes, (code | (kind == 3 ? sign : 0)) | !zeros);
    }
  };
  fill(batch.a, i.a, true);
  fill(batch.b, i.b, true);
  fill(batch.c, i.c, false);
  return batch;
}

TEST_CASE("zero_products_alone: only a zero C takes no part", "[fast]") {
  for (const char* name : {"m16n8k16.f32.f16.f16.f32", "m16n8k16.f32.bf16.bf16.f32"}) {
    const Instruction& i = recording::instruction("mma", name);
    Instruction single = i;
    single.m = single.n = 1;
    const Batch dots = small_numbers(single, 2000);
    for (const std::optional<int> floor : {std::optional<int>(), std::optional<int>(-133)}) {
      unit::UnitDescription own = *unit_of("H100", i);
      own.name = "own";
      own.alignment.floor = floor;
      unit::UnitDescription wide = own;
      wide.a = &element_format(far_zeros(i).a);
      wide.b = &element_format(far_zeros(i).b);
      wide.alignment.zero_exponent = far_zeros(i).zero_exponent;
      const auto expected = results_of(*unit::make_unit(own), dots, Path::reference);
      const EditedDots edited = zero_products_alone(dots);
      INFO(name << " floor " << floor.value_or(0));
      CHECK((results_of(*unit::make_unit(wide), edited.batch, Path::reference) == expected));
    }
  }
}

}  // namespace
}  // namespace numemu::oracle
