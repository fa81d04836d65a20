#include "emu/oracle/dots/dots.hpp"

#include <algorithm>
#include <cstring>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"

namespace numemu::oracle {
namespace {

using unit::Container;
using unit::UnitDescription;

/// Codes in the containers that operands have.
class Packed {
 public:
  Packed(const Format& format, std::int64_t rows, std::int64_t depth)
      : format_(format),
        gather_(unit::Gather::matrix(rows, depth)),
        bytes_(static_cast<std::size_t>(rows * depth) * size()) {}

  void put(std::size_t index, std::uint64_t code) {
    code <<= format_.container_shift;
    std::memcpy(bytes_.data() + index * size(), &code, size());
  }
  unit::Operand operand() const { return {&format_, bytes_.data(), &gather_}; }

 private:
  std::size_t size() const {
    switch (*unit::container_of(format_)) {
      case Container::bytes:
        return 1;
      case Container::halves:
        return 2;
      case Container::floats:
        return 4;
      case Container::doubles:
        break;
    }
    return 8;
  }

  const Format& format_;
  unit::Gather gather_;
  std::vector<std::uint8_t> bytes_;
};

void append(std::vector<std::uint8_t>& all, const std::vector<std::uint8_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

bool same(const Format* x, const Format* y) {
  return x == y || (x != nullptr && y != nullptr && x->name == y->name);
}

/// The dots are the diagonal of a square product, whose operands are decoded once.
std::vector<std::uint64_t> diagonal(const UnitDescription& u, const Ports& ports,
                                    std::span<const Dot> dots) {
  const auto n = static_cast<std::int64_t>(dots.size());
  const auto kept = static_cast<std::size_t>(ports.kept()), k = static_cast<std::size_t>(ports.k);
  Packed a(*ports.a, n, ports.kept()), b(*ports.b, n, ports.k);
  const std::size_t c_bytes =
      static_cast<std::size_t>(unit::bytes_of(unit::c_format(u), unit::result_register(u)));
  std::vector<std::uint8_t> c(dots.size() * dots.size() * c_bytes), scale_a, scale_b, meta;
  for (std::size_t i = 0; i < dots.size(); ++i) {
    for (std::size_t p = 0; p < kept; ++p) a.put(i * kept + p, dots[i].a[p]);
    for (std::size_t p = 0; p < k; ++p) b.put(i * k + p, dots[i].b[p]);
    unit::store_code(unit::c_format(u), unit::result_register(u), dots[i].c, c.data(),
                     static_cast<std::int64_t>(i * dots.size() + i));
    append(scale_a, dots[i].scale_a);
    append(scale_b, dots[i].scale_b);
    append(meta, dots[i].kept);
  }
  unit::Gemm gemm;
  gemm.m = gemm.n = n;
  gemm.k = ports.k;
  gemm.a = a.operand();
  gemm.b = b.operand();
  gemm.c = c.data();
  if (ports.scale != nullptr) {
    gemm.scale_a = scale_a.data();
    gemm.scale_b = scale_b.data();
  }
  if (!ports.sparsity.dense()) gemm.kept = meta.data();
  const unit::ReferenceDot dot(u, gemm);
  std::vector<std::uint64_t> codes;
  codes.reserve(dots.size());
  for (std::int64_t i = 0; i < n; ++i) codes.push_back(dot.code(i, i));
  return codes;
}

}  // namespace

Ports ports_of(const UnitDescription& u, int k) {
  const bool rounds_inputs = u.input.format != nullptr;
  const Format* any = &find_format(rounds_inputs ? "float32" : "float16");
  Ports ports;
  ports.a = u.a != nullptr ? u.a : any;
  ports.b = u.b != nullptr ? u.b : any;
  ports.c = unit::c_format(u);
  ports.d = unit::result_format(u);
  ports.bits = unit::result_register(u).bits;
  ports.k = k;
  ports.scale = u.scaling.block != 0 ? u.scaling.format : nullptr;
  ports.block = u.scaling.block;
  ports.sparsity = u.sparsity;
  return ports;
}

bool fits(const UnitDescription& u, const Ports& ports) {
  return (u.a == nullptr || same(u.a, ports.a)) && (u.b == nullptr || same(u.b, ports.b)) &&
         same(unit::c_format(u), ports.c) && same(unit::result_format(u), ports.d) &&
         (ports.d != nullptr || unit::result_register(u).bits == ports.bits) &&
         (u.scaling.block == 0
              ? ports.scale == nullptr
              : same(u.scaling.format, ports.scale) && u.scaling.block == ports.block) &&
         u.sparsity == ports.sparsity;
}

std::vector<std::uint64_t> evaluate(const UnitDescription& u, const Ports& ports,
                                    std::span<const Dot> dots) {
  // C of a square product has as many elements as all dots squared: pieces keep it small.
  const std::size_t piece = u.accumulator.rounding.stochastic() ? 1 : 64;
  std::vector<std::uint64_t> codes;
  codes.reserve(dots.size());
  for (std::size_t first = 0; first < dots.size(); first += piece) {
    const auto part = dots.subspan(first, std::min(piece, dots.size() - first));
    const auto some = diagonal(u, ports, part);
    codes.insert(codes.end(), some.begin(), some.end());
  }
  return codes;
}

bool gives(const UnitDescription& u, const Ports& ports, std::span<const Dot> dots,
           std::span<const std::uint64_t> codes) {
  // In pieces that grow: most descriptions differ soon.
  std::size_t piece = 8;
  for (std::size_t first = 0; first < dots.size(); piece *= 2) {
    const std::size_t n = std::min(piece, dots.size() - first);
    const auto found = evaluate(u, ports, dots.subspan(first, n));
    if (!std::equal(found.begin(), found.end(), codes.begin() + first)) return false;
    first += n;
  }
  return true;
}

}  // namespace numemu::oracle
