// The roles of a recipe (emu/net/roles.def): what the schema allows each, and where a layer keeps
// it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::policies {

/// What has a quantizer of its own: a role, or a part of one that a recipe may split.
enum class RolePart : std::uint8_t {
#define NUMEMU_WHOLE(role) role,
#define NUMEMU_PART(role, key) role##_##key,
#define NUMEMU_ROLE(name, parts, ...) parts
#include "emu/net/roles.def"
#undef NUMEMU_WHOLE
#undef NUMEMU_PART
};
inline constexpr std::size_t kRoleParts = 0
#define NUMEMU_WHOLE(role) +1
#define NUMEMU_PART(role, key) +1
#include "emu/net/roles.def"
#undef NUMEMU_WHOLE
#undef NUMEMU_PART
#undef NUMEMU_ROLE
    ;

/// An array with an element for each part. An element of a temporary is a value: references to it
/// stay valid.
template <class T>
class PerRolePart {
 public:
  T& operator[](RolePart part) & { return of_[static_cast<std::size_t>(part)]; }
  const T& operator[](RolePart part) const& { return of_[static_cast<std::size_t>(part)]; }
  T operator[](RolePart part) && { return std::move(of_[static_cast<std::size_t>(part)]); }
  auto begin() { return of_.begin(); }
  auto end() { return of_.end(); }
  auto begin() const { return of_.begin(); }
  auto end() const { return of_.end(); }

 private:
  std::array<T, kRoleParts> of_ = {};
};

/// What the schema allows a role, and the parts of it.
struct RoleRow {
  /// The key of the part below that of the role in JSON; "" where the role has one part.
  struct Part {
    std::string_view key;
    RolePart part;
  };

  net::Role role;
  std::vector<Part> parts;
  bool operand = false;   ///< of products: delayed scales, blocks along the reduction axis
  bool stored = false;    ///< a hook of a node or a parameter rewrites the tensor
  bool channel = false;   ///< a scale per index of axis 0
  bool row = false;       ///< a scale per row
  bool clips = false;     ///< "ste": "clipped" has a meaning
  bool shifts = false;    ///< "zero_point": "calibrated" has a meaning
  bool masked = false;    ///< "mask": elements of the operand may be pruned
  bool training = false;  ///< acts in training alone
  /// Left out of the canonical form where the recipe leaves it out: then what it says of
  /// activations holds, or, of tables that are looked up, nothing is quantized.
  bool optional = false;

  std::string name() const { return std::string(net::to_string(role)); }
  bool splits() const { return parts.size() > 1; }
};

/// Every role of the schema, in its order: weight, activation, gradient, then the others.
std::span<const RoleRow> role_table();
/// The role of that name; throws Error with the nearest known one.
const RoleRow& role_row(std::string_view name);
/// Every role of the schema.
std::vector<std::string> role_names();
/// The part that an operand of a product is quantized by; a gradient is that of a kind.
RolePart operand_part(net::Role, net::GemmKind);
/// Of a tensor of the optimizer's state: "first", "second", "complement/velocity".
RolePart state_part(std::string_view tensor);

}  // namespace numemu::policies
