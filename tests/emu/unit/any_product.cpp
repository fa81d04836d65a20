// Draws the arrays of a product.
#include "tests/emu/unit/any_product.hpp"

#include <cstring>

#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"

namespace numemu::unit::test {

AnyProduct::AnyProduct(const Unit& unit, std::int64_t m, std::int64_t n, std::int64_t k, Data data,
                       std::uint64_t seed, bool with_c, const std::string& any)
    : unit_(unit) {
  random_.seed = seed;
  const UnitDescription& u = *unit.description();
  const std::int64_t kept = u.sparsity.dense() ? k : k / u.sparsity.group * u.sparsity.kept;
  gather_a_ = Gather::matrix(m, kept);
  gather_b_ = Gather::matrix(n, k, true);
  gemm_.m = m;
  gemm_.n = n;
  gemm_.k = k;
  const Format& a = u.a != nullptr ? *u.a : find_format(any);
  const Format& b = u.b != nullptr ? *u.b : find_format(any);
  fill(a, m * kept, data, a_);
  fill(b, k * n, data, b_);
  gemm_.a = {&a, a_.data(), &gather_a_};
  gemm_.b = {&b, b_.data(), &gather_b_};
  if (u.scaling.block != 0) {
    const std::int64_t blocks = (kept + u.scaling.block - 1) / u.scaling.block;
    fill_scales(*u.scaling.format, m * blocks, data, scale_a_);
    fill_scales(*u.scaling.format, n * blocks, data, scale_b_);
    gemm_.scale_a = scale_a_.data();
    gemm_.scale_b = scale_b_.data();
  }
  if (!u.sparsity.dense()) {
    fill_meta(u, m, kept);
    gemm_.kept = meta_.data();
  }
  d_bytes_ = bytes_of(unit.d_format(), result_register(u));
  d_.resize(static_cast<std::size_t>(m * n * d_bytes_));
  gemm_.d = d_.data();
  if (with_c) {
    fill_c(u, m * n, data);
    gemm_.c = c_.data();
  }
  gemm_.seed = seed;
}

std::vector<std::uint8_t> AnyProduct::fast() {
  unit_.multiply(gemm_);
  return d_;
}

std::vector<std::uint8_t> AnyProduct::reference() {
  unit_.multiply_reference(gemm_);
  return d_;
}

std::int64_t AnyProduct::mismatches() {
  const auto x = fast(), y = reference();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(d_bytes_))
    count += std::memcmp(&x[i], &y[i], static_cast<std::size_t>(d_bytes_)) != 0;
  return count;
}

std::uint64_t AnyProduct::any_code(const Format& f) {
  return (bits() << 32 | bits()) & f.code_mask();
}

bool AnyProduct::finite(const Format& f, std::uint64_t code) {
  const Class kind = decode(f, code).kind;
  return kind == Class::finite || kind == Class::zero;
}

std::uint64_t AnyProduct::finite_code(const Format& f) {
  for (;;) {
    const std::uint64_t code = any_code(f);
    if (finite(f, code)) return code;
  }
}

std::uint64_t AnyProduct::moderate_code(const Format& f, int shift) {
  double sum = -2;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>(bits()) * 0x1p-32;
  const double scale = f.kind == Kind::integer ? static_cast<double>(f.largest_code()) : 2;
  Value v = value_of(sum * scale);
  v.exponent += shift;
  return encode(f, v, Rounding{}, Overflow::saturate).code;
}

std::uint64_t AnyProduct::tiny_code(const Format& f) {
  if (f.kind != Kind::floating) return any_code(f);
  const std::uint64_t magnitude = below(std::uint64_t{2} << f.mantissa_bits);
  const std::uint64_t code = magnitude | (bits() % 2 == 0 ? 0 : f.sign_bit());
  return finite(f, code) ? code : 0;
}

std::uint64_t AnyProduct::draw(const Format& f, Data data, std::int64_t i, std::uint64_t previous) {
  switch (data) {
    case Data::codes:
      return any_code(f);
    case Data::finite:
      return finite_code(f);
    case Data::moderate:
      return moderate_code(f, 0);
    case Data::wide:
      return below(8) != 0 ? 0 : finite_code(f);
    case Data::cancelling:
      return i % 2 == 0 || !finite(f, previous ^ f.sign_bit() ^ 1)
                 ? moderate_code(f, static_cast<int>(below(5)))
                 : (previous ^ f.sign_bit() ^ (below(4) == 0 ? 1 : 0));
    case Data::tiny:
      return tiny_code(f);
  }
  return 0;
}

void AnyProduct::put(std::vector<std::uint8_t>& array, int bytes, std::int64_t i,
                     std::uint64_t code) {
  std::memcpy(&array[static_cast<std::size_t>(i * bytes)], &code, static_cast<std::size_t>(bytes));
}

void AnyProduct::fill(const Format& f, std::int64_t n, Data data,
                      std::vector<std::uint8_t>& array) {
  const int bytes = container_bytes(f);
  array.assign(static_cast<std::size_t>(n * bytes + 8), 0);
  std::uint64_t code = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    code = draw(f, data, i, code);
    put(array, bytes, i, code << f.container_shift);
  }
}

void AnyProduct::fill_scales(const Format& f, std::int64_t n, Data data,
                             std::vector<std::uint8_t>& array) {
  array.assign(static_cast<std::size_t>(n), 0);
  const std::uint64_t one = encode(f, value_of(1.0f), Rounding{}, Overflow::saturate).code;
  for (auto& code : array) {
    if (data == Data::codes && below(16) == 0) {
      code = static_cast<std::uint8_t>(any_code(f));
    } else if (data == Data::wide || data == Data::tiny) {
      code = static_cast<std::uint8_t>(one - 30 + below(60));
    } else {
      code = static_cast<std::uint8_t>(one - 3 + below(7));
    }
  }
}

void AnyProduct::fill_meta(const UnitDescription& u, std::int64_t m, std::int64_t kept) {
  const int step = gemm_.a.format->bits == 4 ? 2 : 1;  // pairs
  for (std::int64_t g = 0; g < m * kept / u.sparsity.kept; ++g) {
    int left = u.sparsity.kept;
    for (int at = 0; at < u.sparsity.group; at += step) {
      const auto room = static_cast<std::uint64_t>((u.sparsity.group - at) / step);
      if (left == 0 || below(room) >= static_cast<std::uint64_t>(left / step)) continue;
      for (int s = 0; s < step; ++s) meta_.push_back(static_cast<std::uint8_t>(at + s));
      left -= step;
    }
  }
}

void AnyProduct::fill_c(const UnitDescription& u, std::int64_t n, Data data) {
  const Format* f = unit_.c_format();
  const int bytes = bytes_of(f, result_register(u));
  c_.assign(static_cast<std::size_t>(n * bytes + 8), 0);
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint64_t code = 0;
    if (f == nullptr) {
      const auto wide = static_cast<std::int64_t>(static_cast<std::int32_t>(bits()));
      const int shift = 32 - result_register(u).bits;
      code =
          static_cast<std::uint64_t>(data == Data::moderate ? wide >> 20 >> shift : wide >> shift);
      if (bytes < 4) code &= (std::uint64_t{1} << result_register(u).bits) - 1;
    } else {
      code = below(8) == 0 ? f->sign_bit() * below(2) : draw(*f, data, 0, 0);
      if (data == Data::finite && below(2) == 0) code = moderate_code(*f, 3);
      code <<= f->container_shift;
    }
    put(c_, bytes, i, code);
  }
}

}  // namespace numemu::unit::test
