#include "emu/oracle/replay/record_edits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {
namespace {

using recording::Batch;
using recording::Element;
using recording::Instruction;
using recording::Sparsity;

EditedDots copy_of(const Batch& batch) {
  auto instruction = std::make_unique<Instruction>(*batch.instruction);
  EditedDots edited{std::move(instruction), batch};
  edited.batch.instruction = edited.instruction.get();
  return edited;
}

EditedDots empty_dots(const Instruction& i, int count) {
  auto instruction = std::make_unique<Instruction>(i);
  const Instruction& own = *instruction;
  return {std::move(instruction), Batch(own, count)};
}

std::uint64_t code_at(const std::uint8_t* codes, Element e, int index) {
  const int bytes = info(e).bytes;
  return recording::load_code(codes + index * bytes, bytes);
}
void put_code(std::uint8_t* codes, Element e, int index, std::uint64_t code) {
  const int bytes = info(e).bytes;
  recording::store_code(codes + index * bytes, bytes, code);
}

Value value_of_code(Element e, std::uint64_t code) {
  const Format& format = element_format(e);
  return decode(format, code >> format.container_shift & format.code_mask());
}

/// The elements of one dot that a batch owns.
std::uint8_t* line_of(std::vector<std::uint8_t>& codes, int count, int dot) {
  return codes.data() +
         codes.size() / static_cast<std::size_t>(count) * static_cast<std::size_t>(dot);
}

double number(Element e, std::uint64_t code) {
  const Value v = value_of_code(e, code);
  if (v.kind == Class::nan) return std::nan("");
  return to_double(v);
}

bool is_nan(Element e, std::uint64_t code) { return value_of_code(e, code).kind == Class::nan; }
std::uint64_t sign_of(Element e) { return std::uint64_t{1} << (info(e).bits - 1); }
bool negative(Element e, std::uint64_t code) { return (code & sign_of(e)) != 0; }
bool is_zero(Element e, std::uint64_t code) { return value_of_code(e, code).kind == Class::zero; }

/// The quieted NaN of `code` in another type.
std::uint64_t carried(Element from, std::uint64_t code, Element to) {
  constexpr int kPayloadBits = 52;
  const Value nan = value_of_code(from, code);
  const Format& out = element_format(to);
  const std::uint64_t quiet = std::uint64_t{1} << (out.mantissa_bits - 1);
  return (negative(from, code) ? out.sign_bit() : 0) | out.infinity_code() | quiet |
         nan.significand >> (kPayloadBits - out.mantissa_bits);
}

std::uint64_t payload(const DotCodes& dot, std::uint64_t code, bool c_first) {
  const Instruction& i = dot.instruction;
  if (!is_nan(i.d, code)) return code;
  const std::uint64_t c = code_at(dot.c, i.c, 0);
  if (c_first && is_nan(i.c, c)) return carried(i.c, c, i.d);
  for (int j = 0; j < i.kept(); ++j) {
    const std::uint64_t a = code_at(dot.a, i.a, j);
    const std::uint64_t b = code_at(dot.b, i.b, place_of_kept(i, dot.metadata, j));
    if (is_nan(i.a, a)) return carried(i.a, a, i.d);
    if (is_nan(i.b, b)) return carried(i.b, b, i.d);
  }
  return is_nan(i.c, c) ? carried(i.c, c, i.d) : code;
}

/// A zero result whose addends are all negative, and zeros where `zeros`, is -0.
std::uint64_t minus_zero(const DotCodes& dot, std::uint64_t code, bool zeros) {
  const Instruction& i = dot.instruction;
  if (!is_zero(i.d, code)) return code;
  const std::uint64_t c = code_at(dot.c, i.c, 0);
  if (!negative(i.c, c) || (zeros && !is_zero(i.c, c))) return code;
  for (int j = 0; j < i.kept(); ++j) {
    const std::uint64_t a = code_at(dot.a, i.a, j);
    const std::uint64_t b = code_at(dot.b, i.b, place_of_kept(i, dot.metadata, j));
    if (negative(i.a, a) == negative(i.b, b)) return code;
    if (zeros && !is_zero(i.a, a) && !is_zero(i.b, b)) return code;
  }
  return sign_of(i.d);
}

EditedDots as_dense(const Batch& batch, bool beside_zeros) {
  const Instruction& i = *batch.instruction;
  Instruction dense = i;
  dense.sparsity = Sparsity::dense;
  EditedDots edited = empty_dots(dense, batch.count);
  if (!beside_zeros) edited.batch.b = batch.b;
  edited.batch.c = batch.c;
  for (int dot = 0; dot < batch.count; ++dot) {
    const DotCodes from = dot_codes(batch, dot);
    std::uint8_t* const a = line_of(edited.batch.a, batch.count, dot);
    std::uint8_t* const b = line_of(edited.batch.b, batch.count, dot);
    for (int j = 0; j < i.kept(); ++j) {
      const int k = place_of_kept(i, from.metadata, j);
      put_code(a, i.a, k, code_at(from.a, i.a, j));
      put_code(b, i.b, k, code_at(from.b, i.b, k));
    }
  }
  return edited;
}

/// Calls edit(dot, block, scale of A, scale of B) for every block.
template <class Edit>
EditedDots each_block(const Batch& batch, const Edit& edit) {
  EditedDots edited = copy_of(batch);
  const int blocks = batch.instruction->scales();
  for (int dot = 0; dot < batch.count; ++dot) {
    for (int block = 0; block < blocks; ++block)
      edit(edited.batch, dot, block, line_of(edited.batch.scale_a, batch.count, dot)[block],
           line_of(edited.batch.scale_b, batch.count, dot)[block]);
  }
  return edited;
}

}  // namespace

DotCodes dot_codes(const Batch& batch, int dot) {
  const Instruction& i = *batch.instruction;
  const int tile = dot / (i.m * i.n), row = tile * i.m + dot / i.n % i.m,
            column = tile * i.n + dot % i.n;
  const auto line = [](const std::vector<std::uint8_t>& codes, int number, int bytes) {
    return codes.data() + static_cast<std::ptrdiff_t>(number) * bytes;
  };
  return {i, line(batch.a, row, i.kept() * info(i.a).bytes),
          line(batch.b, column, i.k * info(i.b).bytes), line(batch.c, dot, info(i.c).bytes),
          line(batch.metadata, row, i.groups())};
}

OperandEdit in_order(std::vector<int> order) {
  return [order = std::move(order)](const Batch& batch) {
    EditedDots edited = copy_of(batch);
    const auto move = [&](const std::vector<std::uint8_t>& from, std::vector<std::uint8_t>& to) {
      const auto units = static_cast<std::size_t>(batch.count) * order.size();
      const auto bytes = static_cast<std::ptrdiff_t>(from.size() / units);
      for (std::size_t unit = 0; unit < units; ++unit) {
        const std::size_t first = unit - unit % order.size();
        const std::size_t source = first + static_cast<std::size_t>(order[unit % order.size()]);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source) * bytes, bytes,
                    to.begin() + static_cast<std::ptrdiff_t>(unit) * bytes);
      }
    };
    move(batch.a, edited.batch.a);
    move(batch.b, edited.batch.b);
    move(batch.metadata, edited.batch.metadata);
    return edited;
  };
}

EditedDots expanded(const Batch& batch) { return as_dense(batch, false); }
EditedDots expanded_beside_zeros(const Batch& batch) { return as_dense(batch, true); }

EditedDots without_kept_zeros(const Batch& batch) {
  const Instruction& i = *batch.instruction;
  EditedDots edited = copy_of(batch);
  for (int dot = 0; dot < batch.count; ++dot) {
    const DotCodes from = dot_codes(batch, dot);
    for (int j = 0; j < i.kept(); ++j) {
      if (is_zero(i.a, code_at(from.a, i.a, j)))
        put_code(line_of(edited.batch.b, batch.count, dot), i.b, place_of_kept(i, from.metadata, j),
                 0);
    }
  }
  return edited;
}

EditedDots normalised_products(const Batch& batch) {
  const Instruction& i = *batch.instruction;
  Instruction wide = i;
  wide.a = Element::f64;
  wide.b = Element::bf16;
  EditedDots edited = empty_dots(wide, batch.count);
  edited.batch.c = batch.c;
  edited.batch.metadata = batch.metadata;
  edited.batch.scale_a = batch.scale_a;
  edited.batch.scale_b = batch.scale_b;
  for (int dot = 0; dot < batch.count; ++dot) {
    const DotCodes from = dot_codes(batch, dot);
    for (int j = 0; j < i.kept(); ++j) {
      const int k = place_of_kept(i, from.metadata, j);
      const double a = number(i.a, code_at(from.a, i.a, j));
      const double b = number(i.b, code_at(from.b, i.b, k));
      // Zeros, infinities and NaN stay factors, which decide by their own rules; of a number beside
      // them its power of two is enough.
      const bool finite = a != 0 && b != 0 && std::isfinite(a) && std::isfinite(b);
      put_code(line_of(edited.batch.a, batch.count, dot), Element::f64, j,
               std::bit_cast<std::uint64_t>(finite ? a * b : a));
      const auto beside = std::bit_cast<std::uint32_t>(static_cast<float>(finite ? 1.0 : b)) >> 16;
      put_code(line_of(edited.batch.b, batch.count, dot), Element::bf16, k, beside);
    }
  }
  return edited;
}

EditedDots infinite_c_as_nan(const Batch& batch) {
  const Element e = batch.instruction->c;
  const Format& format = element_format(e);
  EditedDots edited = copy_of(batch);
  for (int dot = 0; dot < batch.count; ++dot) {
    std::uint8_t* const c = line_of(edited.batch.c, batch.count, dot);
    if (value_of_code(e, code_at(c, e, 0)).kind == Class::infinite)
      put_code(c, e, 0, format.nan_code());
  }
  return edited;
}

namespace {

constexpr std::uint8_t kSign = 0x80, kPowerOne = 127, kSignificandOne = 0x38;

/// 0xff of ue8m0; 0x7f of ue4m3, whose sign is unused.
bool is_nan_scale(Element e, std::uint8_t scale) {
  return e == Element::ue8m0 ? scale == 0xff : (scale & 0x7f) == 0x7f;
}

}  // namespace

EditedDots least_scales_of_zeros(const Batch& batch) {
  return each_block(batch, [](Batch& edited, int dot, int block, std::uint8_t& a, std::uint8_t& b) {
    const Instruction& i = *edited.instruction;
    if (is_nan_scale(i.scale, a) || is_nan_scale(i.scale, b)) return;
    const DotCodes from = dot_codes(edited, dot);
    double sum = 0;  // of FP4 products: exact
    for (int k = block * i.block; k < (block + 1) * i.block; ++k)
      sum += number(i.a, code_at(from.a, i.a, k)) * number(i.b, code_at(from.b, i.b, k));
    if (sum == 0) a = b = 0;
  });
}

EditedDots nan_scales_of_nonzeros(const Batch& batch) {
  return each_block(batch, [](Batch& edited, int dot, int block, std::uint8_t& a, std::uint8_t& b) {
    const Instruction& i = *edited.instruction;
    if (!is_nan_scale(i.scale, a) && !is_nan_scale(i.scale, b)) return;
    const DotCodes from = dot_codes(edited, dot);
    for (int k = block * i.block; k < (block + 1) * i.block; ++k) {
      if (!is_zero(i.a, code_at(from.a, i.a, k)) && !is_zero(i.b, code_at(from.b, i.b, k))) return;
    }
    a = b = i.scale == Element::ue8m0 ? kPowerOne : kSignificandOne;
  });
}

EditedDots clamped_scales(const Batch& batch) {
  return each_block(batch, [](Batch&, int, int, std::uint8_t& a, std::uint8_t& b) {
    const int sum = a + b - 2 * kPowerOne;
    if (a == 0xff || b == 0xff || (sum >= -kPowerOne && sum <= kPowerOne)) return;
    a = static_cast<std::uint8_t>(sum < 0 ? 0 : 2 * kPowerOne);
    b = kPowerOne;
  });
}

EditedDots signed_scales(const Batch& batch) {
  return each_block(batch, [](Batch& edited, int dot, int block, std::uint8_t& a, std::uint8_t& b) {
    const Instruction& i = *edited.instruction;
    if (((a ^ b) & kSign) == 0) return;
    std::uint8_t* const codes = line_of(edited.a, edited.count, dot);
    for (int k = block * i.block; k < (block + 1) * i.block; ++k)
      put_code(codes, i.a, k, code_at(codes, i.a, k) ^ sign_of(i.a));
  });
}

EditedDots flushed_scales(const Batch& batch) {
  return each_block(batch, [](Batch&, int, int, std::uint8_t& a, std::uint8_t& b) {
    constexpr std::uint8_t kSmallestNormal = 0x08;
    for (std::uint8_t* scale : {&a, &b})
      if ((*scale & ~kSign) < kSmallestNormal) *scale = 0;
  });
}

std::uint64_t first_nan(const DotCodes& dot, std::uint64_t code) {
  return payload(dot, code, false);
}
std::uint64_t first_nan_from_c(const DotCodes& dot, std::uint64_t code) {
  return payload(dot, code, true);
}
std::uint64_t positive_zero(const DotCodes& dot, std::uint64_t code) {
  return is_zero(dot.instruction.d, code) ? 0 : code;
}
std::uint64_t zero_of_zeros(const DotCodes& dot, std::uint64_t code) {
  return minus_zero(dot, code, true);
}
std::uint64_t zero_of_addends(const DotCodes& dot, std::uint64_t code) {
  return minus_zero(dot, code, false);
}

}  // namespace numemu::oracle
