#include "experiments/engine/weight_granularity.hpp"

#include <string_view>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "policies/recipe/role_json.hpp"

namespace numemu::experiments {

const std::string& weight_granularity(const Settings& settings) {
  const std::string& text = settings.text("granularity");
  if (text != "channel" && text != "tensor")
    throw Error("--set: granularity: " + unknown_name("granularity", text, {"channel", "tensor"}));
  return text;
}

bool set_weight_granularity(Json& role, const char* name, const std::string& granularity,
                            const std::string& where) {
  if (std::string_view(name) != "weight" || role.is_null()) return false;
  const Json bare = {{"format", role["format"]}};
  const JsonReader reader(bare, where);
  if (policies::stays_float32(reader) ||
      policies::read_role(reader, policies::role_row(name)).block != nullptr)
    return false;
  role["granularity"] = granularity;
  return true;
}

}  // namespace numemu::experiments
