#include "emu/oracle/own_unit.hpp"

#include "emu/unit/description/json.hpp"
#include "formats/storage/json.hpp"

namespace numemu::oracle {
namespace {

constexpr std::string_view kKey = " description=";
constexpr std::size_t kLongest = 3000;

}  // namespace

std::string description_word(const unit::Unit& unit) {
  const unit::UnitDescription& u = *unit.description();
  if (unit.row().grade != unit::Grade::described_by_you || u.products != nullptr) return "";
  const std::string text = Json::parse(unit::description_json(u)).dump();
  const bool blank = text.find_first_of(" \t") != std::string::npos;
  return blank || text.size() > kLongest ? "" : std::string(kKey) + text;
}

std::string_view described_in(std::string_view header) {
  const std::size_t at = header.find(kKey);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + kKey.size());
  return header.substr(0, header.find_first_of(" \t\r"));
}

}  // namespace numemu::oracle
