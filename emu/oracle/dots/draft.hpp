// Builds one dot from exact numbers: products that A and B can form, their place, and C.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu/oracle/dots/dots.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {

/// A dot whose result tells units apart.
struct AskedDot {
  std::string aspect;  ///< "order", "kept-bits", "tie", "zero-sign", ...
  Dot dot;
  std::string id = {};  ///< of a probe: "kept-bits.product.24"
};

/// significand 2^exponent; a significand of 0 is a zero of that sign.
Value number(std::int64_t significand, int exponent = 0);

/// The code of exactly this number in a format, or in two's complement of `bits` bits; nothing
/// where there is none.
std::optional<std::uint64_t> exact_code(const Format* format, int bits, const Value&);

/// Exponents of powers of two.
struct Reach {
  int least = 0, greatest = -1;
};
/// Of normal numbers of a floating format.
Reach normal_reach(const Format&);
/// The exponent of the last bit of subnormal numbers; 0 of integers.
int last_exponent(const Format&);
/// Of products of two normal operands and, with block scales, of their scales.
Reach product_reach(const Ports&);

/// A dot whose other products are +0 times +0 and whose C is +0; of a sparse A the first positions
/// of each group are kept. What cannot be expressed makes the whole draft empty. Positions count
/// the kept ones.
class Draft {
 public:
  explicit Draft(const Ports&, std::string aspect = {}, std::string id = {});

  /// The product at a position is exactly this finite number. Where there are block scales, the
  /// first product of a block decides its scales.
  Draft& product(int position, const Value&);
  Draft& factors(int position, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b);
  Draft& factors(int position, const Value& a, const Value& b);
  /// B at a k, kept or not, whatever a product puts there.
  Draft& b(int k, std::optional<std::uint64_t>);
  Draft& c(const Value&);
  Draft& c_code(std::optional<std::uint64_t>);
  /// Which of a group are kept, ascending.
  Draft& keep(int group, const std::vector<std::uint8_t>& places);
  Draft& keep(const std::vector<std::uint8_t>& places);  ///< of every group
  /// Of a block, whose operands then come as factors.
  Draft& scales(int block, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b);
  /// The scales of the only block of K; products are written as operands times 2^exponent.
  Draft& common_scale(int exponent);
  /// Several blocks: those that have no scale so far get the least, lest they be the largest
  /// exponent beside tiny terms.
  Draft& least_scales();
  Draft& only_if(bool expressible);

  bool expressible() const { return expressible_; }
  const Ports& ports() const { return *ports_; }
  const std::string& aspect() const { return aspect_; }
  const std::string& id() const { return id_; }
  std::optional<Dot> dot() const;

 private:
  struct Codes {
    std::uint64_t a = 0, b = 0;
  };
  std::optional<Codes> split(const Value&) const;
  std::optional<Codes> split_integer(const Value&) const;
  bool set_scale(int block, int exponent);

  const Ports* ports_;
  std::string aspect_, id_;
  Dot dot_;
  std::vector<std::pair<int, std::uint64_t>> b_of_position_, b_of_k_;
  std::vector<std::optional<int>> scale_exponents_;
  bool expressible_ = true;
};

/// Collects what can be expressed: every probe, and of other questions each dot once.
class Sheet {
 public:
  explicit Sheet(const Ports& ports) : ports_(ports) {}
  const Ports& ports() const { return ports_; }
  Draft draft(std::string aspect = {}, std::string id = {}) const {
    return Draft(ports_, std::move(aspect), std::move(id));
  }

  void add(const Draft& draft) { add(draft.aspect(), draft); }
  void add(const std::string& aspect, const Draft& draft);
  std::vector<AskedDot> take() { return std::move(questions_); }

 private:
  const Ports& ports_;
  std::set<std::vector<std::uint64_t>> seen_;
  std::vector<AskedDot> questions_;
};

}  // namespace numemu::oracle
