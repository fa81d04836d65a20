#include "policies/recipe/role_table.hpp"

#include <algorithm>

#include "formats/suggest.hpp"

namespace numemu::policies {

std::span<const RoleRow> role_table() {
  static const std::vector<RoleRow> table = {
#define NUMEMU_WHOLE(role) {"", RolePart::role},
#define NUMEMU_PART(role, key) {#key, RolePart::role##_##key},
#define NUMEMU_ROLE(name, list, ...) {.role = net::Role::name, .parts = {list}, __VA_ARGS__},
#include "emu/net/roles.def"
#undef NUMEMU_WHOLE
#undef NUMEMU_PART
#undef NUMEMU_ROLE
  };
  return table;
}

const RoleRow& role_row(std::string_view name) {
  return find_named("role", name, role_table(),
                    [](const RoleRow& row) { return net::to_string(row.role); });
}

std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for (const RoleRow& row : role_table()) names.push_back(row.name());
  return names;
}

RolePart operand_part(net::Role role, net::GemmKind kind) {
  if (role == net::Role::gradient)
    return kind == net::GemmKind::dgrad ? RolePart::gradient_dgrad : RolePart::gradient_wgrad;
  const auto table = role_table();
  return std::ranges::find(table, role, &RoleRow::role)->parts.front().part;
}

RolePart state_part(std::string_view tensor) {
  return tensor.substr(tensor.rfind('/') + 1) == "second" ? RolePart::state_second
                                                          : RolePart::state_first;
}

}  // namespace numemu::policies
