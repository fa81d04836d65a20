// Patterns whose elements are kept two at a time are not served by rules that judge them singly.
#include "policies/prune/kept_bits.hpp"

#include "formats/error.hpp"

namespace numemu::policies {

void require_single_elements(const char* rule, const unit::Pattern& pattern) {
  if (pattern.pairwise)
    throw Error(std::string(rule) + "(" + unit::to_string(pattern) +
                "): expected N:M without .pairwise, because this rule judges single elements");
}

}  // namespace numemu::policies
