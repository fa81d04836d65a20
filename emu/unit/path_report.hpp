// Which fast path computes a unit's products, and where none does, what stands in the way.
#pragma once
#include <string>
#include <vector>

#include "emu/unit/description.hpp"

namespace numemu::unit {

struct PathReport {
  /// "fused float", "two levels over fused float"; empty: the reference computes every product.
  std::string path;
  /// Without a path: changes that would give one, each a field and its value: those by which the
  /// description differs from a unit of the catalogue that has one.
  struct Change {
    std::string key, own, other;
  };
  std::vector<Change> changes;
  std::string like;        ///< that unit
  std::string other_path;  ///< and its path
};

/// Found by multiplying a few numbers near 1: some paths decline numbers that lie too far apart.
PathReport path_report(const UnitDescription&);

}  // namespace numemu::unit
