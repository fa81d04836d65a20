#include "api/masks.hpp"

#include "bindings/c/arrays.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"

struct numemu_mask {
  numemu::policies::MaskPolicy policy;
};

using namespace numemu;
using namespace numemu::c;

numemu_status numemu_mask_open(const char* rule, numemu_mask** mask) {
  return call([&] {
    required(mask, "mask") = nullptr;
    *mask = new numemu_mask{api::parse_array_mask(&required(rule, "rule"))};
  });
}

void numemu_mask_close(numemu_mask* mask) { delete mask; }

numemu_status numemu_mask_apply(const numemu_mask* mask, const numemu_random* random,
                                const numemu_array* x, const numemu_array* y,
                                const numemu_array* keep) {
  return call([&] {
    const policies::MaskPolicy& policy = required(mask, "mask").policy;
    const Array numbers = in("x", required(x, "x"));
    Out values("y", y, ArrayType::float32, numbers.shape);
    Out kept("keep", keep, ArrayType::uint8, numbers.shape);
    const numemu_random given = taken(random, "random");
    if (given.words != nullptr) throw usage_error("random: words: expected NULL for a mask");
    api::mask_into(policy, random_source(given, Stream::mask), numbers, {}, values.as<float>(),
                   kept.as<std::uint8_t>());
    values.finish();
    kept.finish();
  });
}
