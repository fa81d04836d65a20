// The parameters of block formats, and which scale rules serve them.
#include "cli/block_tables.hpp"

#include <fmt/format.h>

#include "cli/table.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu::cli {

Json block_json(const BlockFormat& f) {
  std::vector<std::string> rules;
  for (const ScaleRule* rule : all_scale_rules())
    if (serves(*rule, f)) rules.emplace_back(rule->name);
  Json json = {{"name", f.name},
               {"doc", f.doc},
               {"kind", "block"},
               {"element", f.element->name},
               {"element_exponent", f.element_exponent},
               {"largest_element", to_double(largest_element(f))},
               {"scale", f.scale->name},
               {"granularity", to_string(f.span)}};
  json["block"] = f.span == Span::block ? Json(f.size) : Json();
  json.update(Json({{"affine", to_string(f.affine)},
                    {"tensor_scale", f.tensor_scale},
                    {"bits", f.bits_per_element()},
                    {"scale_rule", f.default_rule},
                    {"scale_rules", rules},
                    {"source", f.source}}));
  return json;
}

std::string block_table() {
  std::vector<std::vector<std::string>> rows;
  for (const BlockFormat* f : named_block_formats()) {
    rows.push_back({f->name, f->element->name, f->scale->name, fmt::format("{}", f->size),
                    f->tensor_scale ? "float32" : "", fmt::format("{:g}", f->bits_per_element()),
                    f->default_rule, f->source});
  }
  return text_table(
      {"block format", "element", "scale", "block", "tensor scale", "bits", "rule", "source"},
      rows);
}

bool is_block_name(std::string_view text) { return block_format_meant(text) == text; }

}  // namespace numemu::cli
