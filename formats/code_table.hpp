// A conversion as a table: one result per source code, right whenever nothing but the code decides.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/conversion.hpp"

namespace numemu {

/// From formats of at most 16 bits, by any rounding but stochastic. The formats must outlive it.
class CodeTable {
 public:
  CodeTable(const Conversion&, const Format& from);

  /// The result of a source code, in its container.
  std::uint64_t code(std::uint64_t from_code) const { return codes_[from_code]; }
  std::uint8_t flags(std::uint64_t from_code) const { return flags_[from_code]; }
  /// No code raises a flag, but signalling NaNs.
  bool exact() const;
  /// To float32: signalling NaNs stay signalling from now on and raise no flag. That is a widening
  /// before another conversion, and none by itself.
  void keep_signalling();

  /// Elements [begin, begin + n) of `in` to out[0..n), in containers; flags[0..n) if given. Throws
  /// an Error that names the position in `in` of what is not a code.
  void convert(const void* in, std::int64_t begin, std::int64_t n, void* out,
               std::uint8_t* flags) const;

 private:
  template <class In>
  void read(const void* in, std::int64_t begin, std::int64_t n, void* out,
            std::uint8_t* flags) const;
  template <class In, class Out>
  void write(const In* in, std::int64_t begin, std::int64_t n, Out* out, std::uint8_t* flags) const;

  const Format &from_, &to_;
  std::vector<std::uint64_t> codes_;
  std::vector<std::uint8_t> flags_;
};

}  // namespace numemu
