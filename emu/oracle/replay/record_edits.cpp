#include "emu/oracle/replay/record_edits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {
namespace {

using recording::Element;
using recording::Instruction;

/// Recorded dots: where their operands stand.
struct Dots {
  explicit Dots(const Instruction& i)
      : instruction(i),
        layout(container_layout(i)),
        sparsity(ports_of(i).sparsity),
        a(find_field(layout, "a")),
        b(find_field(layout, "b")),
        scale_a(find_field(layout, "sa")),
        scale_b(find_field(layout, "sb")),
        kept(find_field(layout, "e")),
        c(find_field(layout, "c")),
        d(find_field(layout, "d")) {}

  template <class Given>
  auto& code(Given& records, int field, std::int64_t dot, int at = 0) const {
    const auto f = static_cast<std::size_t>(field);
    return records.columns[f][static_cast<std::size_t>(dot * layout[f].count + at)];
  }
  /// The k of the kept product j.
  int place(const Records& records, std::int64_t dot, int j) const {
    if (kept < 0) return j;
    return j / sparsity.kept * sparsity.group + static_cast<int>(code(records, kept, dot, j));
  }

  Instruction instruction;
  Layout layout;
  unit::Sparsity sparsity;
  int a, b, scale_a, scale_b, kept, c, d;  ///< fields; -1 where there is none
};

Value value_of_code(Element e, std::uint64_t code) {
  const Format& format = element_format(e);
  return decode(format, code >> format.container_shift & format.code_mask());
}
double number(Element e, std::uint64_t code) {
  const Value v = value_of_code(e, code);
  return v.kind == Class::nan ? std::nan("") : to_double(v);
}
bool is_nan(Element e, std::uint64_t code) { return value_of_code(e, code).kind == Class::nan; }
bool is_zero(Element e, std::uint64_t code) { return value_of_code(e, code).kind == Class::zero; }
std::uint64_t sign_of(Element e) { return std::uint64_t{1} << (info(e).bits - 1); }
bool negative(Element e, std::uint64_t code) { return (code & sign_of(e)) != 0; }

/// Calls edit(dots, records, dot) for every record.
template <class Edit>
OperandEdit each_dot(const Instruction& i, const Edit& edit) {
  return {[dots = Dots(i), edit](Records& records, const Sample&) {
    for (std::int64_t dot = 0; dot < records.size; ++dot) edit(dots, records, dot);
  }};
}

/// Calls edit(dots, records, dot, block, scale of A, scale of B) for every block.
template <class Edit>
OperandEdit each_block(const Instruction& i, const Edit& edit) {
  return each_dot(i, [edit](const Dots& dots, Records& records, std::int64_t dot) {
    for (int block = 0; block < dots.instruction.scales(); ++block)
      edit(dots, records, dot, block, dots.code(records, dots.scale_a, dot, block),
           dots.code(records, dots.scale_b, dot, block));
  });
}

OperandEdit as_dense(const Instruction& i, bool beside_zeros) {
  Instruction dense = i;
  dense.sparsity = recording::Sparsity::dense;
  // D keeps its place: the indices stay, and nothing reads them.
  Layout layout = container_layout(i);
  layout[0].count = i.k;
  for (Field& field : layout)
    if (field.name == "e") field.name = "kept";
  return {[from = Dots(i), to = Dots(dense), beside_zeros](Records& records, const Sample&) {
            const Records given = records;
            const auto a = static_cast<std::size_t>(from.a), b = static_cast<std::size_t>(from.b);
            records.columns[a].assign(given.columns[b].size(), 0);
            if (beside_zeros) records.columns[b].assign(given.columns[b].size(), 0);
            for (std::int64_t dot = 0; dot < records.size; ++dot) {
              for (int j = 0; j < from.instruction.kept(); ++j) {
                const int k = from.place(given, dot, j);
                to.code(records, to.a, dot, k) = from.code(given, from.a, dot, j);
                to.code(records, to.b, dot, k) = from.code(given, from.b, dot, k);
              }
            }
          },
          std::move(layout)};
}

/// The quieted NaN of `code` in another type.
std::uint64_t carried(Element from, std::uint64_t code, Element to) {
  constexpr int kPayloadBits = 52;
  const Value nan = value_of_code(from, code);
  const Format& out = element_format(to);
  const std::uint64_t quiet = std::uint64_t{1} << (out.mantissa_bits - 1);
  return (negative(from, code) ? out.sign_bit() : 0) | out.infinity_code() | quiet |
         nan.significand >> (kPayloadBits - out.mantissa_bits);
}

/// What an edit makes of the results of recorded dots.
struct Written {
  Dots dots;
  ResultEdit edit;

  void operator()(Records& records, const Sample& sample) const {
    for (std::int64_t dot = 0; dot < records.size; ++dot) {
      std::uint64_t& code = dots.code(records, dots.d, dot);
      code = edited(sample.records, dot, code);
    }
  }

 private:
  std::uint64_t edited(const Records& given, std::int64_t dot, std::uint64_t code) const {
    switch (edit) {
      case ResultEdit::none:
        break;
      case ResultEdit::first_nan:
      case ResultEdit::first_nan_from_c:
        return payload(given, dot, code, edit == ResultEdit::first_nan_from_c);
      case ResultEdit::positive_zero:
        return is_zero(dots.instruction.d, code) ? 0 : code;
      case ResultEdit::zero_of_zeros:
      case ResultEdit::zero_of_addends:
        return minus_zero(given, dot, code, edit == ResultEdit::zero_of_zeros);
    }
    return code;
  }

  std::uint64_t payload(const Records& given, std::int64_t dot, std::uint64_t code,
                        bool c_first) const {
    const Instruction& i = dots.instruction;
    if (!is_nan(i.d, code)) return code;
    const std::uint64_t c = dots.code(given, dots.c, dot);
    if (c_first && is_nan(i.c, c)) return carried(i.c, c, i.d);
    for (int j = 0; j < i.kept(); ++j) {
      const std::uint64_t a = dots.code(given, dots.a, dot, j);
      const std::uint64_t b = dots.code(given, dots.b, dot, dots.place(given, dot, j));
      if (is_nan(i.a, a)) return carried(i.a, a, i.d);
      if (is_nan(i.b, b)) return carried(i.b, b, i.d);
    }
    return is_nan(i.c, c) ? carried(i.c, c, i.d) : code;
  }

  /// A zero result whose addends are all negative, and zeros where `zeros`, is -0.
  std::uint64_t minus_zero(const Records& given, std::int64_t dot, std::uint64_t code,
                           bool zeros) const {
    const Instruction& i = dots.instruction;
    if (!is_zero(i.d, code)) return code;
    const std::uint64_t c = dots.code(given, dots.c, dot);
    if (!negative(i.c, c) || (zeros && !is_zero(i.c, c))) return code;
    for (int j = 0; j < i.kept(); ++j) {
      const std::uint64_t a = dots.code(given, dots.a, dot, j);
      const std::uint64_t b = dots.code(given, dots.b, dot, dots.place(given, dot, j));
      if (negative(i.a, a) == negative(i.b, b)) return code;
      if (zeros && !is_zero(i.a, a) && !is_zero(i.b, b)) return code;
    }
    return sign_of(i.d);
  }
};

constexpr std::uint64_t kSign = 0x80, kPowerOne = 127, kSignificandOne = 0x38;

/// 0xff of ue8m0; 0x7f of ue4m3, whose sign is unused.
bool is_nan_scale(Element e, std::uint64_t scale) {
  return e == Element::ue8m0 ? scale == 0xff : (scale & 0x7f) == 0x7f;
}

}  // namespace

OperandEdit in_order(const Instruction& i, std::vector<int> order) {
  return each_dot(
      i, [order = std::move(order)](const Dots& dots, Records& records, std::int64_t dot) {
        for (const int field : {dots.a, dots.b, dots.kept}) {
          if (field < 0) continue;
          const std::int64_t count = dots.layout[static_cast<std::size_t>(field)].count;
          const auto group = count / static_cast<std::int64_t>(order.size());
          const auto first = records.columns[static_cast<std::size_t>(field)].begin() + dot * count;
          const std::vector<std::uint64_t> given(first, first + count);
          for (std::size_t unit = 0; unit < order.size(); ++unit)
            std::copy_n(given.begin() + order[unit] * group, group,
                        first + static_cast<std::int64_t>(unit) * group);
        }
      });
}

OperandEdit expanded(const Instruction& i) { return as_dense(i, false); }
OperandEdit expanded_beside_zeros(const Instruction& i) { return as_dense(i, true); }

OperandEdit without_kept_zeros(const Instruction& i) {
  return each_dot(i, [](const Dots& dots, Records& records, std::int64_t dot) {
    const Instruction& own = dots.instruction;
    for (int j = 0; j < own.kept(); ++j) {
      if (is_zero(own.a, dots.code(records, dots.a, dot, j)))
        dots.code(records, dots.b, dot, dots.place(records, dot, j)) = 0;
    }
  });
}

OperandEdit normalised_products(const Instruction& i) {
  OperandEdit edit = each_dot(i, [](const Dots& dots, Records& records, std::int64_t dot) {
    const Instruction& own = dots.instruction;
    std::vector<std::uint64_t> beside(static_cast<std::size_t>(own.k), 0);
    for (int j = 0; j < own.kept(); ++j) {
      const int k = dots.place(records, dot, j);
      std::uint64_t& code = dots.code(records, dots.a, dot, j);
      const double a = number(own.a, code);
      const double b = number(own.b, dots.code(records, dots.b, dot, k));
      // Zeros, infinities and NaN stay factors, which decide by their own rules; of a number beside
      // them its power of two is enough.
      const bool finite = a != 0 && b != 0 && std::isfinite(a) && std::isfinite(b);
      code = std::bit_cast<std::uint64_t>(finite ? a * b : a);
      beside[static_cast<std::size_t>(k)] =
          std::bit_cast<std::uint32_t>(static_cast<float>(finite ? 1.0 : b)) >> 16;
    }
    std::copy(beside.begin(), beside.end(), &dots.code(records, dots.b, dot));
  });
  Instruction wide = i;
  wide.a = Element::f64;
  wide.b = Element::bf16;
  edit.layout = container_layout(wide);
  return edit;
}

OperandEdit infinite_c_as_nan(const Instruction& i) {
  return each_dot(i, [](const Dots& dots, Records& records, std::int64_t dot) {
    const Element e = dots.instruction.c;
    std::uint64_t& c = dots.code(records, dots.c, dot);
    if (value_of_code(e, c).kind == Class::infinite) c = element_format(e).nan_code();
  });
}

OperandEdit least_scales_of_zeros(const Instruction& i) {
  return each_block(i, [](const Dots& dots, Records& records, std::int64_t dot, int block,
                          std::uint64_t& a, std::uint64_t& b) {
    const Instruction& own = dots.instruction;
    if (is_nan_scale(own.scale, a) || is_nan_scale(own.scale, b)) return;
    double sum = 0;  // of FP4 products: exact
    for (int k = block * own.block; k < (block + 1) * own.block; ++k)
      sum += number(own.a, dots.code(records, dots.a, dot, k)) *
             number(own.b, dots.code(records, dots.b, dot, k));
    if (sum == 0) a = b = 0;
  });
}

OperandEdit nan_scales_of_nonzeros(const Instruction& i) {
  return each_block(i, [](const Dots& dots, Records& records, std::int64_t dot, int block,
                          std::uint64_t& a, std::uint64_t& b) {
    const Instruction& own = dots.instruction;
    if (!is_nan_scale(own.scale, a) && !is_nan_scale(own.scale, b)) return;
    for (int k = block * own.block; k < (block + 1) * own.block; ++k) {
      if (!is_zero(own.a, dots.code(records, dots.a, dot, k)) &&
          !is_zero(own.b, dots.code(records, dots.b, dot, k)))
        return;
    }
    a = b = own.scale == Element::ue8m0 ? kPowerOne : kSignificandOne;
  });
}

OperandEdit clamped_scales(const Instruction& i) {
  return each_block(
      i, [](const Dots&, Records&, std::int64_t, int, std::uint64_t& a, std::uint64_t& b) {
        const auto one = static_cast<int>(kPowerOne);
        const int sum = static_cast<int>(a + b) - 2 * one;
        if (a == 0xff || b == 0xff || (sum >= -one && sum <= one)) return;
        a = sum < 0 ? 0 : 2 * kPowerOne;
        b = kPowerOne;
      });
}

OperandEdit signed_scales(const Instruction& i) {
  return each_block(i, [](const Dots& dots, Records& records, std::int64_t dot, int block,
                          std::uint64_t& a, std::uint64_t& b) {
    const Instruction& own = dots.instruction;
    if (((a ^ b) & kSign) == 0) return;
    for (int k = block * own.block; k < (block + 1) * own.block; ++k)
      dots.code(records, dots.a, dot, k) ^= sign_of(own.a);
  });
}

OperandEdit flushed_scales(const Instruction& i) {
  return each_block(
      i, [](const Dots&, Records&, std::int64_t, int, std::uint64_t& a, std::uint64_t& b) {
        constexpr std::uint64_t kSmallestNormal = 0x08;
        for (std::uint64_t* scale : {&a, &b})
          if ((*scale & ~kSign) < kSmallestNormal) *scale = 0;
      });
}

Rule::Change change_of(const Instruction& i, ResultEdit edit) {
  return edit == ResultEdit::none ? Rule::Change{} : Written{Dots(i), edit};
}

ResultEdit edit_of(const Rule::Change& change) {
  const Written* const written = change.target<Written>();
  return written == nullptr ? ResultEdit::none : written->edit;
}

}  // namespace numemu::oracle
