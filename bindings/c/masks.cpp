#include <limits>

#include "bindings/c/arrays.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"
#include "policies/mask/mask_tensor.hpp"

struct numemu_mask {
  numemu::policies::MaskPolicy policy;
};

using namespace numemu;
using namespace numemu::c;

numemu_status numemu_mask_open(const char* rule, numemu_mask** mask) {
  return call([&] {
    required(mask, "mask") = nullptr;
    policies::MaskPolicy policy = policies::parse_mask(&required(rule, "rule"));
    if (policy.repair == policies::Repair::adaprune)
      throw Error(std::string(rule) + ": expected none of repair=adaprune, which needs a network");
    *mask = new numemu_mask{std::move(policy)};
  });
}

void numemu_mask_close(numemu_mask* mask) { delete mask; }

numemu_status numemu_mask_apply(const numemu_mask* mask, const numemu_random* random,
                                const numemu_array* x, const numemu_array* y,
                                const numemu_array* keep) {
  return call([&] {
    const policies::MaskPolicy& policy = required(mask, "mask").policy;
    const Array numbers = in("x", required(x, "x"));
    require_type("x", numbers.type, {ArrayType::float32}, "numbers");
    if (numbers.shape.size() != 2)
      throw usage_error("x: shape: expected rows x columns, found " + shape_text(numbers.shape));
    Out values("y", y, ArrayType::float32, numbers.shape);
    Out kept("keep", keep, ArrayType::uint8, numbers.shape);
    const numemu_random given = taken(random, "random");
    if (given.words != nullptr) throw usage_error("random: words: expected NULL for a mask");
    const policies::MaskLayout layout = {.rows = numbers.shape[0],
                                         .width = numbers.shape[1],
                                         .along_rows = policy.axis == policies::MaskAxis::batch};
    const double threshold =
        policy.rule->threshold == nullptr
            ? 0
            : policy.rule->threshold(policy, numbers.as<float>(), layout.size());
    policies::mask_tensor(policy, random_source(given, Stream::mask), layout, 0, threshold,
                          numbers.as<float>(), values.as<float>(), kept.as<std::uint8_t>());
    values.finish();
    kept.finish();
  });
}
