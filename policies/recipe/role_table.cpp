#include "policies/recipe/role_table.hpp"

#include <algorithm>

#include "formats/suggest.hpp"

namespace numemu::policies {

std::span<const RoleRow> role_table() {
  using Role = net::Role;
  using Part = RolePart;
  static const std::vector<RoleRow> table = {
      {.role = Role::weight,
       .parts = {{"", Part::weight}},
       .operand = true,
       .channel = true,
       .clips = true,
       .masked = true},
      {.role = Role::activation,
       .parts = {{"", Part::activation}},
       .operand = true,
       .row = true,
       .clips = true,
       .shifts = true,
       .masked = true},
      {.role = Role::gradient,
       .parts = {{"dgrad", Part::gradient_dgrad}, {"wgrad", Part::gradient_wgrad}},
       .operand = true,
       .row = true,
       .masked = true,
       .training = true},
      {.role = Role::vector, .parts = {{"", Part::vector}}, .row = true},
      {.role = Role::output, .parts = {{"", Part::output}}, .row = true},
      {.role = Role::saved, .parts = {{"", Part::saved}}, .row = true, .training = true},
      {.role = Role::state,
       .parts = {{"first", Part::first_state}, {"second", Part::second_state}},
       .channel = true,
       .training = true},
      {.role = Role::exchange, .parts = {{"", Part::exchange}}, .channel = true, .training = true},
      {.role = Role::embedding,
       .parts = {{"", Part::embedding}},
       .channel = true,
       .optional = true},
      {.role = Role::key,
       .parts = {{"", Part::key}},
       .channel = true,
       .row = true,
       .shifts = true,
       .optional = true},
      {.role = Role::value,
       .parts = {{"", Part::value}},
       .channel = true,
       .row = true,
       .shifts = true,
       .optional = true}};
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
  return tensor.substr(tensor.rfind('/') + 1) == "second" ? RolePart::second_state
                                                          : RolePart::first_state;
}

}  // namespace numemu::policies
