// N and M as constants of the compiler for the patterns hardware has, so that their loops unroll.
#pragma once
#include "emu/unit/sparse/pattern.hpp"

namespace numemu::unit {

template <int Kept, int Group>
struct FixedShape {
  static constexpr int kept = Kept, group = Group;
};

struct AnyShape {
  int kept, group;
};

/// Calls visit(shape), the shape's `kept` and `group` being those of the pattern.
template <class Visit>
auto with_shape(const Sparsity& s, const Visit& visit) {
  if (s.kept == 2 && s.group == 4) return visit(FixedShape<2, 4>{});
  if (s.kept == 1 && s.group == 2) return visit(FixedShape<1, 2>{});
  if (s.kept == 4 && s.group == 8) return visit(FixedShape<4, 8>{});
  return visit(AnyShape{s.kept, s.group});
}

}  // namespace numemu::unit
