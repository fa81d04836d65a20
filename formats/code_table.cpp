#include "formats/code_table.hpp"

#include <algorithm>

#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/signalling_nan.hpp"

namespace numemu {

CodeTable::CodeTable(const Conversion& c, const Format& from) : from_(from), to_(*c.format) {
  const std::uint64_t count = from.last_code() + 1;
  codes_.resize(count);
  flags_.resize(count);
  for (std::uint64_t code = 0; code < count; ++code) {
    const Encoded result = encode_element(c, decode(from, code), 0);
    codes_[code] = result.code << to_.container_shift;
    flags_[code] = result.flags;
  }
}

bool CodeTable::exact() const {
  for (std::uint64_t code = 0; code < codes_.size(); ++code)
    if (flags_[code] != 0 && !is_signalling(decode(from_, code))) return false;
  return true;
}

void CodeTable::keep_signalling() {
  constexpr std::uint64_t kSignalling = 0x7fa00000, kSign = 0x80000000;
  for (std::uint64_t code = 0; code < codes_.size(); ++code) {
    const Value v = decode(from_, code);
    if (!is_signalling(v)) continue;
    codes_[code] = kSignalling | (v.negative ? kSign : 0);
    flags_[code] = 0;
  }
}

template <class In>
void CodeTable::read(const void* in, std::int64_t begin, std::int64_t n, void* out,
                     std::uint8_t* flags) const {
  const auto* source = static_cast<const In*>(in);
  switch (container_bytes(to_)) {
    case 1:
      return write(source, begin, n, static_cast<std::uint8_t*>(out), flags);
    case 2:
      return write(source, begin, n, static_cast<std::uint16_t*>(out), flags);
    case 4:
      return write(source, begin, n, static_cast<std::uint32_t*>(out), flags);
    default:
      return write(source, begin, n, static_cast<std::uint64_t*>(out), flags);
  }
}

template <class In, class Out>
void CodeTable::write(const In* in, std::int64_t begin, std::int64_t n, Out* out,
                      std::uint8_t* flags) const {
  for (std::int64_t i = begin; i < begin + n; ++i) {
    if (in[i] >= codes_.size()) checked_code(from_, in, i);  // throws
    out[i - begin] = static_cast<Out>(codes_[in[i]]);
  }
  if (flags == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) flags[i] = flags_[in[begin + i]];
}

void CodeTable::convert(const void* in, std::int64_t begin, std::int64_t n, void* out,
                        std::uint8_t* flags) const {
  if (container_bytes(from_) == 1) return read<std::uint8_t>(in, begin, n, out, flags);
  return read<std::uint16_t>(in, begin, n, out, flags);
}

}  // namespace numemu
