// float32 arrays to a format and back at full speed: the plan is made once, then used on any array.
#pragma once
#include <cstdint>
#include <memory>

#include "formats/conversion.hpp"

namespace numemu {

namespace simd {
struct Plan;
struct SharedExponentPlan;
}  // namespace simd

/// A conversion from float32. Runs vector loops where they apply and the reference elsewhere, with
/// the same bits. Const functions may run in several threads at once; each uses one.
class Float32Converter {
 public:
  explicit Float32Converter(const Conversion&);
  ~Float32Converter();
  Float32Converter(Float32Converter&&) noexcept;
  Float32Converter& operator=(Float32Converter&&) noexcept;

  /// Whether the vector loops serve this conversion.
  bool fast() const { return plan_ != nullptr || shared_ != nullptr; }
  const Conversion& conversion() const { return conversion_; }

  /// y[i] = the float32 value of the code of x[i] (exact for every format the loops serve, else
  /// rounded once to nearest even); y may be x. flags[i], where given, receives the Flag bits.
  /// `first` is the index of x[0] in its tensor: it selects the random bits.
  void round(const float* x, std::int64_t n, float* y, std::uint8_t* flags = nullptr,
             std::int64_t first = 0) const;
  /// Codes of formats of at most 8 bits.
  void encode(const float* x, std::int64_t n, std::uint8_t* codes, std::uint8_t* flags = nullptr,
              std::int64_t first = 0) const;
  /// Codes of formats of 9 to 16 bits.
  void encode(const float* x, std::int64_t n, std::uint16_t* codes, std::uint8_t* flags = nullptr,
              std::int64_t first = 0) const;
  /// Codes of formats of 17 to 32 bits, as they lie in containers of 4 bytes: shifted by the
  /// format's container shift.
  void encode(const float* x, std::int64_t n, std::uint32_t* codes, std::uint8_t* flags = nullptr,
              std::int64_t first = 0) const;

 private:
  template <class Out>
  void run(const float* x, std::int64_t n, Out* out, std::uint8_t* flags, std::int64_t first) const;

  Conversion conversion_;
  // At most one of them.
  std::unique_ptr<const simd::Plan> plan_;
  std::unique_ptr<const simd::SharedExponentPlan> shared_;
};

/// Counts the Flag bits of n elements.
FlagCounts count_flags(const std::uint8_t* flags, std::int64_t n);

}  // namespace numemu
