#include "policies/recipe/stages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace numemu::policies {
namespace {

constexpr std::int64_t kMostEpochs = 1'000'000;

/// The member, null where there is none.
const Json& member_of(const Json& json, const std::string& key) {
  static const Json kNull;
  return json.is_object() && json.contains(key) ? json.at(key) : kNull;
}

bool has(const Json& json, const std::string& key) {
  return json.is_object() && json.contains(key);
}

void require_removals(const JsonReader& patch, const Json& given, const Json& canonical) {
  if (!patch.value().is_object()) return;
  for (const auto& item : patch.value().items()) {
    const JsonReader member = patch.member(item.key());
    if (item.value().is_null() && !has(given, item.key()) && !has(canonical, item.key()))
      member.fail("a key to remove: the recipe before this stage has none of that name");
    require_removals(member, member_of(given, item.key()), member_of(canonical, item.key()));
  }
}

}  // namespace

StageStart read_start(const JsonReader& from, const std::vector<StageStart>& earlier) {
  if (!from.value().is_object() || from.value().size() != 1)
    from.fail("{\"epoch\": N}, {\"plateau\": X} or {\"turning_point\": X}");
  from.require_keys({"epoch", "plateau", "turning_point"});
  const JsonReader epoch = from.member("epoch");
  StageStart start;
  const auto share = [&](const char* key) {
    const JsonReader member = from.member(key);
    const double x = member.value().is_number() ? member.value().get<double>() : -1;
    if (!(x >= 0 && x <= 1)) member.fail("a number from 0 to 1");
    return x;
  };
  if (from.has("plateau")) {
    start.plateau = share("plateau");
    return start;
  }
  if (from.has("turning_point")) {
    start.turning_point = share("turning_point");
    return start;
  }
  std::int64_t least = 1;
  for (const StageStart& other : earlier) least = std::max(least, other.epoch + 1);
  if (epoch.is_null()) epoch.fail("the number of an epoch");
  start.epoch = epoch.integer(0, least, kMostEpochs);
  return start;
}

Json start_json(const StageStart& start) {
  if (start.turning_point) return {{"turning_point", *start.turning_point}};
  return start.epoch > 0 ? Json{{"epoch", start.epoch}} : Json{{"plateau", start.plateau}};
}

void require_stage_patch(const JsonReader& patch, const Json& given, const Json& canonical) {
  for (const char* key : {"numemu_recipe", "seed", "objectives", "stages"}) {
    if (patch.has(key)) patch.member(key).fail("no such key: it is the same in all stages");
  }
  if (patch.has("update") && has(patch.value().at("update"), "optimizer")) {
    patch.member("update")
        .member("optimizer")
        .fail("no such key: stages share the optimizer's state");
  }
  for (const char* key : {"saved", "exchange"}) {
    if (has(patch.value(), key) && patch.member(key).is_null() && !has(canonical, key) &&
        !member_of(member_of(canonical, "roles"), key).is_null())
      patch.member(key).fail(
          fmt::format("roles.{} to remove: it is a role before this stage", key));
  }
  require_removals(patch, given, canonical);
}

Json merged_patch(Json target, const Json& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = Json::object();
  for (const auto& item : patch.items()) {
    if (item.value().is_null()) {
      target.erase(item.key());
    } else {
      target[item.key()] = merged_patch(member_of(target, item.key()), item.value());
    }
  }
  return target;
}

Json patch_between(const Json& from, const Json& to) {
  if (!to.is_object()) return to;
  Json patch = Json::object();
  if (from.is_object()) {
    for (const auto& item : from.items()) {
      if (!item.value().is_null() && member_of(to, item.key()).is_null())
        patch[item.key()] = nullptr;
    }
  }
  for (const auto& item : to.items()) {
    const Json& was = member_of(from, item.key());
    if (item.value().is_null() || was == item.value()) continue;
    Json change = patch_between(was, item.value());
    // Objects are equal in any order of their members.
    if (was.is_object() && change.is_object() && change.empty()) continue;
    patch[item.key()] = std::move(change);
  }
  return patch;
}

}  // namespace numemu::policies
