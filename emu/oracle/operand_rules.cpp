// Rules of inputs: elements in another place or lost, codes changed on the way in or read as
// another format.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "emu/oracle/codes_of_sums.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/unit/description/fields.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using Codes = std::span<std::uint64_t>;
using Names = std::vector<const char*>;

constexpr std::int64_t kMostLanes = 128;

/// Fields of inputs and what they are called.
struct Side {
  const char* name;
  Names fields;
};

class OperandRules {
 public:
  explicit OperandRules(const Subject& s) : s_(s), layout_(layout_of(s)) {}

  std::vector<Rule> make() {
    // Of rules that say the same of some records, the narrower comes first.
    scales();
    metadata();
    sides();
    if (find("b") >= 0 && s_.unit == nullptr && s_.a->name == s_.b->name)
      add("operands", "a and b swapped",
          [a = at("a"), b = at("b")](Records& records, const Sample&) {
            records.columns[a].swap(records.columns[b]);
          });
    for (const Side& side : sides_) places(side);
    products();
    lost_products();
    c();
    for (const Side& side : sides_) codes(side);
    return std::move(rules_);
  }

 private:
  int find(const char* name) const { return find_field(layout_, name); }
  std::size_t at(const char* name) const { return static_cast<std::size_t>(find(name)); }
  std::int64_t count(const char* name) const { return layout_[at(name)].count; }

  void add(const char* family, std::string name, Rule::Change inputs) {
    rules_.push_back({.family = family, .name = std::move(name), .inputs = std::move(inputs)});
  }

  /// Changes the codes of each record in each of these fields, all of which there are.
  void change(const char* family, std::string name, const Names& fields,
              std::function<void(Codes)> change) {
    std::vector<std::pair<std::size_t, std::int64_t>> columns;
    for (const char* field : fields) columns.emplace_back(at(field), count(field));
    add(family, std::move(name),
        [columns, change = std::move(change)](Records& records, const Sample&) {
          for (const auto& [f, n] : columns) {
            for (std::int64_t i = 0; i < records.size; ++i)
              change(Codes(records.columns[f])
                         .subspan(static_cast<std::size_t>(i * n), static_cast<std::size_t>(n)));
          }
        });
  }

  /// Element e becomes what element from(e, count) was.
  void permute(const char* family, std::string name, const Names& fields,
               std::function<std::int64_t(std::int64_t e, std::int64_t count)> from) {
    change(family, std::move(name), fields, [from = std::move(from)](Codes codes) {
      const std::vector<std::uint64_t> old(codes.begin(), codes.end());
      const std::int64_t n = std::ssize(codes);
      for (std::int64_t e = 0; e < n; ++e)
        codes[static_cast<std::size_t>(e)] = old[static_cast<std::size_t>(from(e, n))];
    });
  }

  void recode(const char* family, std::string name, const Names& fields,
              std::function<std::uint64_t(const Field&, std::uint64_t)> to) {
    const Field field = layout_[at(fields.front())];
    change(family, std::move(name), fields, [to = std::move(to), field](Codes codes) {
      for (std::uint64_t& code : codes) code = to(field, code);
    });
  }

  void sides() {
    if (is_unary(s_.operation)) {
      sides_ = {{"the operand", {"in"}}};
      return;
    }
    sides_ = {{"A", {"a"}}, {"B", {"b"}}};
    if (s_.a->name == s_.b->name) sides_.push_back({"A and B", {"a", "b"}});
  }

  void places(const Side& side) {
    if (count(side.fields[0]) < 2 || side.fields.size() > 1) return;
    permute("operands", fmt::format("elements of {} in reverse order", side.name), side.fields,
            [](auto e, auto n) { return n - 1 - e; });
    const bool nibbles = layout_[at(side.fields[0])].bits == 4;
    permute("operands",
            fmt::format("{} of {} {}", nibbles ? "nibbles" : "neighbours", side.name,
                        nibbles ? "swapped" : "exchanged"),
            side.fields, [](auto e, auto n) { return (e ^ 1) < n ? e ^ 1 : e; });
    permute("operands", fmt::format("elements of {} one place late", side.name), side.fields,
            [](auto e, auto n) { return (e + n - 1) % n; });
    permute("operands", fmt::format("elements of {} one place early", side.name), side.fields,
            [](auto e, auto n) { return (e + 1) % n; });
  }

  /// Both operands alike: the same products in another order.
  void products() {
    if (find("b") < 0 || count("a") != count("b") || s_.k < 2) return;
    permute("order", "products in descending k", {"a", "b"},
            [](auto e, auto n) { return n - 1 - e; });
    const std::int64_t step = this->step();
    if (std::has_single_bit(static_cast<std::uint64_t>(step)) && s_.k % step == 0 && step > 2)
      permute("order", fmt::format("products paired k and k + {} instead of neighbours", step / 2),
              {"a", "b"}, [step](auto e, auto) {
                std::int64_t reversed = 0;  // the bits of the place in its step
                for (std::int64_t bit = 1; bit < step; bit *= 2)
                  reversed = 2 * reversed + ((e & bit) != 0);
                return e - e % step + reversed;
              });
    permute("order", "products of even and odd k exchanged", {"a", "b"},
            [](auto e, auto n) { return (e ^ 1) < n ? e ^ 1 : e; });
  }

  /// Products of a step; all where a unit has none.
  std::int64_t step() const {
    const std::int64_t own =
        s_.unit != nullptr ? unit::products_of_step(*s_.unit->description()) : 0;
    return own != 0 ? std::min(own, count("a")) : count("a");
  }

  /// Products become zero; -0 where the format of A has it, which is as if nothing was added.
  void lose(const char* family, std::string name, std::function<bool(std::int64_t)> lost,
            bool nothing = true) {
    const int kept = find("e");
    const auto a = at("a"), b = at("b");
    const std::int64_t n = count("a"), k = count("b");
    const unit::Sparsity pattern =
        kept >= 0 ? s_.unit->description()->sparsity : unit::Sparsity{1, 1};
    const std::uint64_t sign =
        nothing && s_.a->has_negative_zero() ? s_.a->sign_bit() : std::uint64_t{0};
    add(family, std::move(name),
        [=, zero_a = zero(layout_[a]) | sign, zero_b = zero(layout_[b]), lost = std::move(lost)](
            Records& records, const Sample&) {
          for (std::int64_t i = 0; i < records.size; ++i) {
            for (std::int64_t p = 0; p < n; ++p) {
              if (!lost(p)) continue;
              const std::int64_t index =
                  kept < 0 ? 0 : static_cast<std::int64_t>(records.code(kept, i * n + p));
              const std::int64_t partner = p / pattern.kept * pattern.group + index;
              records.columns[a][static_cast<std::size_t>(i * n + p)] = zero_a;
              records.columns[b][static_cast<std::size_t>(i * k + partner)] = zero_b;
            }
          }
        });
  }

  static std::uint64_t zero(const Field& f) {
    return f.format == nullptr ? 0 : encode(*f.format, Value{}, {}, Overflow::saturate).code;
  }

  void lost_products() {
    if (find("b") < 0) return;
    const std::int64_t n = count("a"), step = this->step();
    if (n < 2 || !s_.a->has_zero() || !s_.b->has_zero()) return;
    lose("lanes", fmt::format("the last product, of k {}, is lost", n - 1),
         [n](std::int64_t p) { return p == n - 1; });
    const int instruction = s_.unit != nullptr ? s_.unit->description()->k : 0;
    for (const std::int64_t lanes : std::set<std::int64_t>{step, instruction, n}) {
      if (lanes < 2 || lanes > std::min(n, kMostLanes)) continue;
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        lose(
            "lanes", fmt::format("lane {} of {} is dead", lane, lanes),
            [lane, lanes](std::int64_t p) { return p % lanes == lane; }, false);
    }
    for (std::int64_t block = 2; block < n; block *= 2) {
      const std::int64_t whole = n / block * block;
      if (whole != n)
        lose("tail", fmt::format("products from {} on are lost: no whole {}", whole, block),
             [whole](std::int64_t p) { return p >= whole; });
    }
    if (step >= n) return;
    const std::int64_t last = (n - 1) / step * step;
    lose("tail", fmt::format("the last step, products from {} on, is lost", last),
         [last](std::int64_t p) { return p >= last; });
    lose("tail", fmt::format("the first step, products before {}, is lost", step),
         [step](std::int64_t p) { return p < step; });
    lose("accumulator", "the accumulator is cleared before the last step",
         [last](std::int64_t p) { return p < last; });
  }

  void c() {
    if (find("c") < 0) return;
    const bool fused = s_.unit == nullptr && s_.operation != Operation::dot;
    if (!fused) recode("C", "C is not added", {"c"}, [](const Field& f, auto) { return zero(f); });
    codes({"C", {"c"}});
    if (!fused || s_.a->name != s_.to->name) return;
    for (const auto& [name, other] : {std::pair("b and c swapped", "b"), {"a and c swapped", "a"}})
      add("operands", name, [x = at(other), c = at("c")](Records& records, const Sample&) {
        records.columns[x].swap(records.columns[c]);
      });
  }

  void codes(const Side& side) {
    const Field& f = layout_[at(side.fields[0])];
    for (const BitOrder& order : bit_orders(f.bits))
      recode("bits", fmt::format(fmt::runtime(order.name), side.name), side.fields,
             [order](const Field& field, auto code) { return order.change(code, field.bits); });
    if (f.format == nullptr || f.format->is_signed) {
      if (side.fields.size() == 1)
        recode("sign", fmt::format("{} negated", side.name), side.fields, negated);
      recode("sign", fmt::format("signs of {} lost", side.name), side.fields, without_sign);
    }
    if (f.format != nullptr && f.format->has_negative_zero())
      recode("zero", fmt::format("-0 of {} reads as +0", side.name), side.fields, plus_zero);
  }

  void scales() {
    if (find("sa") < 0) return;
    const Field& field = layout_[at("sa")];
    const std::uint64_t one =
        encode(*field.format, Value{Class::finite, false, false, 0, 1}, {}, Overflow::saturate)
            .code;
    for (const Side& side : {Side{"A", {"sa"}}, Side{"B", {"sb"}}, Side{"A and B", {"sa", "sb"}}}) {
      recode("scale", fmt::format("scales of {} ignored", side.name), side.fields,
             [one](const Field&, auto) { return one; });
      if (field.count > 1) {
        permute("scale", fmt::format("scales of {}: those of the next block", side.name),
                side.fields, [](auto e, auto n) { return (e + 1) % n; });
        permute("scale", fmt::format("scales of {}: those of the block before", side.name),
                side.fields, [](auto e, auto n) { return (e + n - 1) % n; });
        permute("scale", fmt::format("scales of {}: that of the first block for all", side.name),
                side.fields, [](auto, auto) { return 0; });
        permute("scale", fmt::format("scales of {} in reverse order", side.name), side.fields,
                [](auto e, auto n) { return n - 1 - e; });
      }
      if (side.fields.size() > 1) continue;  // a description has both with another bias
      const std::size_t own = at(side.fields[0]), other = own == at("sa") ? at("sb") : at("sa");
      for (const int up : {1, -1})
        add("scale",
            fmt::format("scales of {} {} (bias one too {})", side.name,
                        up > 0 ? "doubled" : "halved", up > 0 ? "small" : "large"),
            [own, other, up, &format = *field.format](Records& records, const Sample&) {
              for (std::size_t i = 0; i < records.columns[own].size(); ++i)
                move_scale(format, up, records.columns[own][i], records.columns[other][i]);
            });
      for (const int up : {1, -1})
        recode("scale",
               fmt::format("codes of the scales of {} one too {}", side.name,
                           up > 0 ? "large" : "small"),
               side.fields, [up](const Field& f, std::uint64_t code) {
                 const bool last = up > 0 ? code == f.format->last_code() : code == 0;
                 const bool nan = decode(*f.format, code).kind == Class::nan;
                 return last || nan ? code : up > 0 ? code + 1 : code - 1;
               });
    }
  }

  /// Moves one of two factors by a power of two; the other where the first has no such number.
  static void move_scale(const Format& f, int up, std::uint64_t& own, std::uint64_t& other) {
    if (decode(f, own).kind != Class::finite) return;
    for (std::uint64_t* code : {&own, &other}) {
      Value v = decode(f, *code);
      if (v.kind != Class::finite) return;
      v.exponent += up;
      const Encoded moved = encode(f, v, {}, Overflow::saturate);
      if (moved.flags != 0) continue;
      *code = moved.code;
      return;
    }
  }

  void metadata() {
    if (find("e") < 0) return;
    const std::int64_t group = s_.unit->description()->sparsity.group,
                       kept = s_.unit->description()->sparsity.kept;
    const auto in_group = [&](std::string name, auto from) {
      permute("metadata", std::move(name), {"b"},
              [group, from](auto e, auto) { return e - e % group + from(e % group); });
    };
    in_group("indices one too large, modulo the group",
             [group](auto j) { return (j + 1) % group; });
    in_group("indices one too small, modulo the group",
             [group](auto j) { return (j + group - 1) % group; });
    in_group("indices one too large, at most the last",
             [group](auto j) { return std::min(j + 1, group - 1); });
    in_group("indices one too small, at least 0",
             [](auto j) { return std::max<std::int64_t>(j - 1, 0); });
    in_group("indices counted from the end of the group",
             [group](auto j) { return group - 1 - j; });
    permute("metadata", "metadata of the next group", {"e"},
            [kept](auto e, auto n) { return (e + kept) % n; });
    permute("metadata", "metadata of the group before", {"e"},
            [kept](auto e, auto n) { return (e + n - kept) % n; });
    change("metadata", "metadata ignored: the first of each group", {"e"}, [kept](Codes codes) {
      for (std::size_t p = 0; p < codes.size(); ++p) codes[p] = p % static_cast<std::size_t>(kept);
    });
    permute("metadata", "indices of a group in reverse order", {"a"},
            [kept](auto e, auto n) { return std::min(e - e % kept + kept - 1 - e % kept, n - 1); });
    add("metadata", "metadata ignored: element n of A meets element n of B",
        [b = at("b"), e = find("e"), n = count("a"), k = count("b"), group, kept](
            Records& records, const Sample& sample) {
          for (std::int64_t i = 0; i < records.size; ++i) {
            for (std::int64_t p = 0; p < n; ++p) {
              const std::int64_t partner =
                  p / kept * group + static_cast<std::int64_t>(records.code(e, i * n + p));
              records.columns[b][static_cast<std::size_t>(i * k + partner)] =
                  sample.records.columns[b][static_cast<std::size_t>(i * k + p)];
            }
          }
        });
  }

  const Subject& s_;
  const Layout layout_;
  std::vector<Side> sides_;
  std::vector<Rule> rules_;
};

}  // namespace

std::vector<Rule> operand_rules(const Subject& s) { return OperandRules(s).make(); }

namespace {

using unit::UnitDescription;
using FormatPointer = std::shared_ptr<const Format>;

/// Formats that read codes of this one differently: those of as many bits, and a bias one off.
std::vector<std::pair<std::string, FormatPointer>> siblings(const Format& own) {
  std::vector<std::pair<std::string, FormatPointer>> all;
  for (const Format* other : named_formats()) {
    if (other->bits == own.bits && other->name != own.name && other->kind != Kind::sign)
      all.emplace_back("as " + other->name, FormatPointer(FormatPointer(), other));
  }
  if (own.kind != Kind::floating) return all;
  for (const int off : {-1, 1}) {
    auto moved = std::make_shared<Format>(own);
    moved->bias += off;
    moved->name += fmt::format(".bias{}", moved->bias);
    all.emplace_back(fmt::format("with bias {} in place of {}", moved->bias, own.bias), moved);
  }
  return all;
}

bool same_shape(const Layout& x, const Layout& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Field& f, const Field& g) {
    return f.name == g.name && f.bits == g.bits && f.count == g.count;
  });
}

class FormatRules {
 public:
  explicit FormatRules(const Subject& s) : s_(s), layout_(layout_of(s)) {}

  std::vector<Rule> make() {
    if (s_.unit != nullptr) scales();
    operands();
    if (s_.unit == nullptr) {
      result();
    } else {
      c();
      registers();
    }
    return std::move(rules_);
  }

 private:
  /// The unit with `change` done to its description, or the operation, with these operands.
  /// `hold` keeps formats alive.
  template <class Change>
  void add(const char* family, std::string name, const Format* a, const Format* b,
           std::vector<FormatPointer> hold, const Change& change) {
    Subject theirs = s_;
    std::shared_ptr<const unit::Unit> unit;
    if (s_.unit == nullptr) {
      theirs.a = a;
      theirs.b = b;
    } else {
      UnitDescription u = *s_.unit->description();
      u.name = "rival";
      if (u.a != nullptr) u.a = a;
      if (u.b != nullptr) u.b = b;
      change(u);
      try {
        unit::check_description(u);
        unit = unit::make_unit(u);
        theirs = with_results_of(s_, unit_subject(*unit, s_.k, a, b));
      } catch (const Error&) {
        return;
      }
    }
    if (!same_shape(layout_of(theirs), layout_)) return;
    rules_.push_back({.family = family,
                      .name = std::move(name),
                      .compute = [theirs, unit, hold](Records& r) { evaluate(theirs, r); }});
  }
  void add(std::string name, const Format* a, const Format* b, std::vector<FormatPointer> hold) {
    add("decoding", std::move(name), a, b, std::move(hold), [](UnitDescription&) {});
  }

  void operands() {
    const bool one = is_unary(s_.operation), alike = s_.a->name == s_.b->name;
    for (const auto& [how, format] : siblings(*s_.a)) {
      const Format* f = format.get();
      if (one || alike)
        add(one ? "operands decoded " + how : "A and B decoded " + how, f, f, {format});
      if (!one) add("A decoded " + how, f, s_.b, {format});
    }
    if (one) return;
    for (const auto& [how, format] : siblings(*s_.b))
      add("B decoded " + how, s_.a, format.get(), {format});
    if (!alike && s_.a->bits == s_.b->bits) add("formats of A and B exchanged", s_.b, s_.a, {});
  }

  /// Where C has not the same format.
  void result() {
    if (find_field(layout_, "c") >= 0) return;
    if (row_of(s_.operation).arithmetic == Arithmetic::comparison) return;
    for (const auto& [how, format] : siblings(*s_.to)) {
      Subject theirs = s_;
      theirs.to = format.get();
      rules_.push_back(
          {.family = "decoding",
           .name = "results written " + how,
           .compute = [theirs, hold = format](Records& records) { evaluate(theirs, records); }});
    }
  }

  void scales() {
    const Format* own = s_.unit->description()->scaling.format;
    if (own == nullptr) return;
    for (const auto& [how, format] : siblings(*own))
      add("scale", "scales decoded " + how, s_.a, s_.b, {format},
          [f = format.get()](UnitDescription& u) { u.scaling.format = f; });
  }

  void c() {
    const Format* own = s_.unit->c_format();
    if (own == nullptr) return;
    for (const auto& [how, format] : siblings(*own))
      add("decoding", "C decoded " + how, s_.a, s_.b, {format},
          [this, f = format.get()](UnitDescription& u) {
            u.d = s_.to;
            u.c = f;
          });
  }

  /// A two's complement register with a bit fewer at either end.
  void registers() {
    const UnitDescription& own = *s_.unit->description();
    const unit::Register& r = own.accumulator;
    if (r.format != nullptr || own.outer.every != 0 || s_.codes) return;
    for (const int fraction : {0, 1}) {
      UnitDescription u = own;
      u.name = "rival";
      --u.accumulator.bits;
      u.accumulator.fraction -= fraction;
      if (u.accumulator.bits < 2 || u.accumulator.fraction < 0) continue;
      try {
        unit::check_description(u);
      } catch (const Error&) {
        continue;
      }
      const std::shared_ptr<const unit::Unit> narrow = unit::make_unit(u);
      Subject theirs = unit_subject(*narrow, s_.k, s_.a, s_.b);
      rules_.push_back(
          {.family = "register",
           .name = fraction != 0
                       ? fmt::format("the register keeps {} fraction bits instead of {}",
                                     r.fraction - 1, r.fraction)
                       : fmt::format("the register has {} bits instead of {}", r.bits - 1, r.bits),
           .compute = [theirs, narrow, fraction, bits = r.bits,
                       saturates = r.integer != unit::IntegerOverflow::wrap,
                       layout = layout_](Records& records) {
             const auto number = [](std::uint64_t code, int width) {
               return static_cast<std::int64_t>(code << (64 - width)) >> (64 - width);
             };
             const std::int64_t most = (std::int64_t{1} << (bits - 2)) - 1;
             const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
             for (std::uint64_t& c :
                  records.columns[static_cast<std::size_t>(find_field(layout, "c"))]) {
               std::int64_t held = number(c, bits) >> fraction;
               if (saturates) held = std::clamp(held, -most - 1, most);
               c = static_cast<std::uint64_t>(held) & mask >> 1;
             }
             evaluate(theirs, records);
             for (std::uint64_t& d :
                  records.columns[static_cast<std::size_t>(find_field(layout, "d"))])
               d = (static_cast<std::uint64_t>(number(d, bits - 1)) << fraction) & mask;
           }});
    }
  }

  const Subject& s_;
  const Layout layout_;
  std::vector<Rule> rules_;
};

}  // namespace

std::vector<Rule> format_rules(const Subject& s) { return FormatRules(s).make(); }

}  // namespace numemu::oracle
