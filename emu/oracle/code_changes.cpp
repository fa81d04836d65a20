#include "emu/oracle/code_changes.hpp"

namespace numemu::oracle {
namespace {

std::uint64_t sign_of(const Field& f) {
  return f.format != nullptr ? f.format->sign_bit() : std::uint64_t{1} << (f.bits - 1);
}

bool twos_complement(const Field& f) {
  return f.format == nullptr || f.format->kind == Kind::integer;
}

std::uint64_t with_nibbles_swapped(std::uint64_t code, int) {
  return (code & 0x0f) << 4 | (code >> 4 & 0x0f);
}

std::uint64_t with_bytes_reversed(std::uint64_t code, int bits) {
  return __builtin_bswap64(code) >> (64 - bits);
}

}  // namespace

std::uint64_t negated(const Field& f, std::uint64_t code) {
  const std::uint64_t sign = sign_of(f);
  if (sign == 0) return code;
  if (twos_complement(f)) return (~code + 1) & (2 * sign - 1);
  const bool no_sign = !f.format->has_negative_zero() && (code & ~sign) == 0;
  return no_sign ? code : code ^ sign;
}

std::uint64_t without_sign(const Field& f, std::uint64_t code) {
  if (twos_complement(f)) return (code & sign_of(f)) != 0 ? negated(f, code) : code;
  const bool no_sign = !f.format->has_negative_zero() && (code & ~sign_of(f)) == 0;
  return no_sign ? code : code & ~sign_of(f);
}

std::uint64_t plus_zero(const Field& f, std::uint64_t code) {
  const bool has = f.format != nullptr && f.format->has_negative_zero();
  return has && code == f.format->sign_bit() ? 0 : code;
}

std::vector<BitOrder> bit_orders(int bits) {
  if (bits == 8) return {{"nibbles of the codes of {} swapped", with_nibbles_swapped}};
  if (bits == 16 || bits == 32 || bits == 64)
    return {{"bytes of the codes of {} in reverse order", with_bytes_reversed}};
  return {};
}

}  // namespace numemu::oracle
