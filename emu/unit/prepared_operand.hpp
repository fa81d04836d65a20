// What fast paths have computed from one operand alone, kept for the paths and the products that
// read the same operand again.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// An operand of rows x depth elements with its block scales (null: none). Nothing is computed
/// until a fast path needs it; each result is then computed once and kept: values decoded and
/// padded (4 bytes per element of the padded source; 8 on units whose register is float64 or needs
/// it; nothing on integer units), their ranges, exponents of scales. Where paths read it in several
/// ways, each is kept. Any number of threads may read it at once.
class PreparedOperand {
 public:
  enum class Lifetime : std::uint8_t {
    product,   ///< `operand`, with its gather, outlives this
    products,  ///< the same of its codes; the gather is copied
  };
  PreparedOperand(const Operand&, std::int64_t rows, std::int64_t depth, const std::uint8_t* scales,
                  Lifetime, const Unit* = nullptr);
  PreparedOperand(const PreparedOperand&) = delete;
  PreparedOperand& operator=(const PreparedOperand&) = delete;

  /// Throws Error naming the unit unless that unit's prepare() made this from this operand: the
  /// same codes, format, gather, shape and scales.
  void require(const Unit&, const Operand&, std::int64_t rows, std::int64_t depth,
               const std::uint8_t* scales) const;
  /// Whether the operand is the one that this was made from.
  bool is(const Operand&, std::int64_t rows, std::int64_t depth, const std::uint8_t* scales) const;

  /// make(operand) of the first call for this T. T must name one computation only, and that must
  /// depend on nothing but the unit's description and the operand.
  template <class T, class Make>
  std::shared_ptr<const T> once(const Make& make) const {
    return std::static_pointer_cast<const T>(
        find_or_make(typeid(T), [&]() -> std::shared_ptr<const void> {
          return std::make_shared<const T>(make(operand_));
        }));
  }

 private:
  using Made = std::shared_ptr<const void>;
  Made find_or_make(std::type_index, const std::function<Made()>&) const;

  Gather gather_;    ///< empty where that of the operand is read in place
  Operand operand_;  ///< not prepared itself, so that what is made from it is made in full
  std::int64_t rows_, depth_;
  const std::uint8_t* scales_;
  const Unit* unit_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::type_index, Made>> made_;
};

/// PreparedOperand::once() of an operand that is prepared; else made anew.
template <class T, class Make>
std::shared_ptr<const T> prepared(const Operand& operand, const Make& make) {
  if (operand.prepared != nullptr) return operand.prepared->once<T>(make);
  return std::make_shared<const T>(make(operand));
}

}  // namespace numemu::unit
