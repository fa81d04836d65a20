// The state of roles that survives a restart: counts.
#include <fmt/format.h>

#include <map>

#include "formats/error.hpp"
#include "policies/recipe/role_numerics.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

std::string counts_name(std::string_view layer, net::Role role, net::GemmKind kind) {
  return fmt::format("recipe/counts/{}/{}/{}", layer, net::to_string(role), net::to_string(kind));
}

void load_counts(const std::string& name, const std::string& bytes, SharedCounts& counts) {
  const std::vector<std::uint64_t> n = from_bytes(name, bytes);
  if (n.size() != 4)
    throw Error("state " + name + ": expected 4 numbers, found " + std::to_string(n.size()));
  const auto at = [&](int i) { return static_cast<std::int64_t>(n[i]); };
  counts.set({at(0), at(1), at(2), at(3)});
}

}  // namespace

void RoleNumerics::save_state(net::NamedState& state) const {
  for (const auto& [name, layer] : layers_) {
    for (const net::Role role : kRoles) {
      for (const net::GemmKind kind : kGemmKinds) {
        const OperandCounts c = layer->count(kind, role).get();
        if (c == OperandCounts{}) continue;
        const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
        state.emplace_back(counts_name(name, role, kind),
                           to_bytes({unsigned_of(c.elements), unsigned_of(c.overflow),
                                     unsigned_of(c.underflow), unsigned_of(c.invalid)}));
      }
    }
  }
}

void RoleNumerics::load_state(const net::NamedState& state) {
  const std::map<std::string, std::string> by_name(state.begin(), state.end());
  for (auto& [name, layer] : layers_) {
    for (const net::Role role : kRoles) {
      for (const net::GemmKind kind : kGemmKinds) {
        layer->count(kind, role).set({});
        const auto counts = by_name.find(counts_name(name, role, kind));
        if (counts != by_name.end())
          load_counts(counts->first, counts->second, layer->count(kind, role));
      }
    }
  }
}

}  // namespace numemu::policies
