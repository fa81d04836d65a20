// Masks: which elements are kept, or their unbiased estimates.
#include "bindings/c/call.hpp"
#include "policies/mask/mask_tensor.hpp"

struct numemu_mask {
  numemu::policies::MaskPolicy policy;
};

using namespace numemu;
using c::guarded, c::required;

numemu_status numemu_mask_open(const char* rule, numemu_mask** out) {
  return guarded([&] {
    required(out, "mask") = nullptr;
    *out = new numemu_mask{policies::parse_mask(&required(rule, "rule"))};
  });
}
void numemu_mask_close(numemu_mask* mask) { delete mask; }

numemu_status numemu_mask_apply(const numemu_mask* handle, const numemu_random* random,
                                const numemu_array* in, const numemu_array* out,
                                const numemu_array* kept) {
  return guarded([&] {
    const policies::MaskPolicy& policy = required(handle, "mask").policy;
    const c::Given given(in, "x");
    given.require_type(ArrayType::float32);
    if (given.shape().size() != 2)
      throw usage_error("x: shape: expected rows x columns, found " + shape_text(given.shape()));
    c::Result y(out, "y", ArrayType::float32, given.shape());
    c::Result keep(kept, "keep", ArrayType::uint8, given.shape());
    Conversion source{.random = {.stream = Stream::mask}};
    c::set_random(random, source);
    if (source.random_words != nullptr)
      throw usage_error("random: words: a mask draws by seed and counter alone");
    const Array x = given.read();
    const policies::MaskLayout layout{.rows = given.shape()[0], .width = given.shape()[1]};
    const double threshold = policy.rule->threshold == nullptr
                                 ? 0
                                 : policy.rule->threshold(policy, x.as<float>(), given.elements());
    policies::mask_tensor(policy, source.random, layout, 0, threshold, x.as<float>(), y.as<float>(),
                          keep.as<std::uint8_t>());
    y.finish();
    keep.finish();
  });
}
