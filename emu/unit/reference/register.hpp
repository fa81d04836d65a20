// The register of a unit: how an exact sum is rounded into it, and how its codes are stored.
#pragma once
#include <cstdint>
#include <optional>

#include "emu/unit/description.hpp"
#include "formats/value.hpp"

namespace numemu::unit {

/// Beside exception flags: a two's complement register saturated, which raises none.
inline constexpr std::uint8_t kSaturated = 0x80;

/// The value the register holds after `exact` is written to it. NaN and infinity pass where the
/// register has them. `random` as encode() takes it. A floating register adds its exception flags
/// to `flags`, where given, one of two's complement kSaturated.
Value round_to(const Register&, const Value& exact, std::uint32_t random = 0,
               std::uint8_t* flags = nullptr);
/// round_to() with the unit's treatment of tiny results; a flushed one is inexact, hence underflow.
Value round_to(const Register&, const Subnormals&, const Value& exact, std::uint32_t random = 0,
               std::uint8_t* flags = nullptr);

/// Ends of a saturating register that are one code short. No unit has such ends: the oracle looks
/// for machines that do.
struct ShortEnds {
  bool lowest = false, largest = false;
};
/// What a register with such ends, if any, holds in place of this value of its own.
Value within(const Register&, const ShortEnds*, const Value& held);

/// A subnormal number of the format as the unit reads it when it flushes.
Value flushed(const Format&, const Value&, bool to_plus_zero);

/// Bytes of one element of C or D in containers: of a floating format, or of a two's complement
/// register (1 up to 8 bits, 2 up to 16, else 4).
int bytes_of(const Format* format, const Register&);
/// Element `index` of C, as a value.
Value read_element(const Format* format, const Register&, const void* array, std::int64_t index);
/// The value of a code that the format, or the register, has.
Value element_value(const Format* format, const Register&, std::uint64_t code);
/// The code of a value that the format, or the register, holds exactly; NaN becomes `nan_code`.
std::uint64_t code_of(const Format* format, const Register&, const Value&, std::uint64_t nan_code);
/// The x86 code of a NaN: quieted with its sign and payload, or `default_code` where an invalid
/// operation made it.
std::uint64_t x86_nan(const Format&, const Value& nan, std::uint64_t default_code);
/// The code of what a register of the unit holds between two steps, NaN as the unit's rule writes
/// it; nothing for a NaN that the register's format does not have.
std::optional<std::uint64_t> register_code(const UnitDescription&, const Register&, const Value&);
/// Stores a code as element `index` of D.
void store_code(const Format* format, const Register&, std::uint64_t code, void* array,
                std::int64_t index);

}  // namespace numemu::unit
