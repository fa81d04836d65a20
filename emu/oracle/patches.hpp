// Collects the patches of a description, one function for each group of parameters.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "emu/oracle/rival.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {

inline constexpr std::array kModes = {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                      RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd};
/// "to nearest even", "toward zero"
const char* words(RoundingMode);

class Patches {
 public:
  explicit Patches(const unit::UnitDescription& u) : u_(u) {}
  std::vector<Rival> make();

 private:
  /// Adds the description with `change` done to it where that is another one without contradiction.
  template <class Change>
  void add(std::string name, const Change& change) {
    unit::UnitDescription other = u_;
    change(other);
    other.name = u_.name.empty() ? "rival" : u_.name + ".rival";
    try {
      unit::check_description(other);
    } catch (const Error&) {
      return;
    }
    if (!same_rule(other, u_)) rivals_.push_back({std::move(name), std::move(other)});
  }

  // The sum.

  void alignment();
  void c_entry();
  /// The register's rounding and width.
  void result();
  /// Registers of any fraction up to that of `whole`; `what` holds `held`, and `put` finds it.
  void widths(const char* what, const Format& held, const Format& whole,
              unit::Register& (*put)(unit::UnitDescription&));
  /// Another core with everything that only the old one uses at its default.
  void core();
  void chain();
  void tree();
  /// Products of a step, of an instruction, and their order.
  void steps();
  /// A second level of accumulation, or none; its sums and its register.
  void levels();
  void outer_register();

  // The numbers.

  void subnormals();
  /// Operands that the format holds are never rounded, but subnormal ones may be normal there.
  bool changes_operands(const Format& format, RoundingMode mode) const;
  void input();
  void overflow();
  void nan();

  const unit::UnitDescription& u_;
  std::vector<Rival> rivals_;
};

}  // namespace numemu::oracle
