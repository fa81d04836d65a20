#include <algorithm>
#include <optional>

#include "api/oracle.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/columns.hpp"
#include "bindings/c/handles.hpp"

struct numemu_vectors {
  numemu::api::UnitPtr unit;  ///< of the subject, which it keeps
  numemu::api::Vectors vectors;
  std::int64_t at = 0;
};

using namespace numemu;
using namespace numemu::c;

numemu_status numemu_vectors_open(const numemu_operation* operation, const char* style,
                                  int32_t level, uint64_t seed, int64_t n, numemu_vectors** out) {
  return call([&] {
    required(out, "out") = nullptr;
    const numemu_operation& o = required(operation, "operation");
    require_within("level", level, 1, 2);
    require_within("n", n, 0, INT64_MAX);
    oracle::Subject subject = o.subject;
    subject.style = style == nullptr ? "mixed" : style;
    subject.level = level;
    subject.seed = seed;
    *out =
        new numemu_vectors{o.unit, api::Vectors(subject, n == 0 ? std::nullopt : std::optional(n))};
  });
}

void numemu_vectors_close(numemu_vectors* vectors) { delete vectors; }

int64_t numemu_vectors_size(const numemu_vectors* vectors) {
  return vectors == nullptr ? 0 : vectors->vectors.size();
}

numemu_status numemu_vectors_next(numemu_vectors* vectors, int64_t most, uint64_t* const* columns,
                                  int64_t* got) {
  return call([&] {
    required(got, "got") = 0;
    numemu_vectors& v = required(vectors, "vectors");
    const oracle::Layout& layout = v.vectors.layout();
    require_within("most", most, 0, INT64_MAX);
    const std::int64_t n = std::min(most, v.vectors.size() - v.at);
    require_columns(layout, columns, n);
    in_pieces(layout, n, [&](std::int64_t first, std::int64_t count) {
      oracle::Records records(layout, count);
      v.vectors.fill(v.at + first, records);
      give_records(layout, records, first, columns, true);
    });
    v.at += n;
    *got = n;
  });
}

numemu_status numemu_vectors_seek(numemu_vectors* vectors, int64_t i) {
  return call([&] {
    numemu_vectors& v = required(vectors, "vectors");
    require_within("i", i, 0, v.vectors.size());
    v.at = i;
  });
}
