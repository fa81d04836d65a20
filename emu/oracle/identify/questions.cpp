#include "emu/oracle/identify/questions.hpp"

#include <algorithm>
#include <array>

#include "emu/oracle/dots/draft.hpp"
#include "emu/oracle/identify/floating_questions.hpp"
#include "emu/oracle/probes/probes.hpp"
#include "formats/codec.hpp"
#include "formats/random.hpp"

namespace numemu::oracle {

namespace {

constexpr std::array<const char*, 6> kKinds = {"random",        "random, wide",
                                               "random codes",  "random, small",
                                               "random, large", "random, cancelling"};

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t number) {
    source_.seed = seed;
    source_.stream = Stream::vectors;
    first_ = number << 16;
  }
  std::uint64_t bits() { return source_.bits(first_ + next_++, 32); }
  int below(int n) { return static_cast<int>(bits() % static_cast<std::uint64_t>(n)); }

 private:
  RandomSource source_;
  std::uint64_t first_ = 0, next_ = 0;
};

std::uint64_t any_code(const Format& f, Draws& draw) {
  std::uint64_t code = draw.bits();
  if (f.bits > 32) code = code << 32 | draw.bits();
  code &= f.code_mask();
  return code <= f.last_code() ? code : 0;
}

/// A finite number whose exponent lies in the window, counted from the format's smallest normal.
std::uint64_t code_near(const Format& f, int least, int greatest, Draws& draw) {
  const Reach reach = normal_reach(f);
  const int low = std::clamp(least, reach.least - 1, reach.greatest);
  const int high = std::clamp(greatest, low, reach.greatest);
  const int field = low - reach.least + 1 + draw.below(high - low + 1);
  std::uint64_t code = any_code(f, draw);
  const std::uint64_t mantissa = code & ((std::uint64_t{1} << f.mantissa_bits) - 1);
  code = (code & f.sign_bit()) | static_cast<std::uint64_t>(field) << f.mantissa_bits | mantissa;
  return (code & ~f.sign_bit()) <= f.largest_code() ? code
                                                    : (code & f.sign_bit()) | f.largest_code();
}

class RandomDot {
 public:
  RandomDot(const Ports& ports, std::uint64_t seed, std::uint64_t number)
      : ports_(ports), kind_(static_cast<int>(number % kKinds.size())), draw_(seed, number) {}

  Dot make() {
    Dot dot;
    for (int p = 0; p < ports_.kept(); ++p) dot.a.push_back(element(*ports_.a));
    for (int p = 0; p < ports_.k; ++p) dot.b.push_back(element(*ports_.b));
    dot.c = ports_.c != nullptr ? c(*ports_.c) : integer_c();
    for (int s = 0; s < ports_.scales(); ++s) {
      dot.scale_a.push_back(scale());
      dot.scale_b.push_back(scale());
    }
    keep(dot);
    if (kind_ == 5) cancel(dot);
    return dot;
  }

 private:
  std::uint64_t element(const Format& f) {
    if (f.kind != Kind::floating || kind_ == 2) return any_code(f, draw_);
    const Reach reach = normal_reach(f);
    switch (kind_) {
      case 0:
      case 5:
        return code_near(f, -2, 1, draw_);
      case 1:
        return code_near(f, std::max(reach.least, -24), std::min(reach.greatest, 24), draw_);
      case 3:
        return code_near(f, reach.least - 1, reach.least / 2, draw_);
      default:
        return code_near(f, reach.greatest / 2, reach.greatest, draw_);
    }
  }

  std::uint64_t c(const Format& f) {
    if (kind_ == 2) return any_code(f, draw_);
    const Reach reach = normal_reach(f);
    const int near = kind_ == 3 ? reach.least : kind_ == 4 ? reach.greatest - 2 : 0;
    const int window = draw_.below(3) == 0 ? 24 : 3;
    return draw_.below(8) == 0 ? 0 : code_near(f, near - window, near + window, draw_);
  }

  /// Near an end of the register every third time.
  std::uint64_t integer_c() {
    const std::uint64_t mask = (std::uint64_t{1} << ports_.bits) - 1;
    const std::uint64_t end = std::uint64_t{1} << (ports_.bits - 1);
    const std::uint64_t near = end + draw_.bits() % 4096 - 2048;
    const std::uint64_t code = draw_.below(3) == 0 ? near : draw_.bits();
    return code & mask;
  }

  std::uint8_t scale() {
    const Format& f = *ports_.scale;
    if (kind_ == 2) return static_cast<std::uint8_t>(any_code(f, draw_));
    return static_cast<std::uint8_t>(code_near(f, -6, 6, draw_));
  }

  void keep(Dot& dot) {
    const unit::Sparsity& s = ports_.sparsity;
    if (s.dense()) return;
    // Pairs are kept together (4 of 8); any choice of ascending positions serves the others.
    const int unit = s.kept == 4 && s.group == 8 ? 2 : 1;
    for (int first = 0; first < ports_.k; first += s.group) {
      int left = s.kept / unit;
      for (int place = 0; place < s.group / unit; ++place) {
        if (draw_.below(s.group / unit - place) >= left) continue;
        --left;
        for (int i = 0; i < unit; ++i)
          dot.kept.push_back(static_cast<std::uint8_t>(place * unit + i));
      }
    }
  }

  /// Every second dense product takes back the one at a random earlier place.
  void cancel(Dot& dot) {
    if (!ports_.sparsity.dense() || !ports_.a->is_signed) return;
    const auto kept = static_cast<std::size_t>(ports_.kept());
    for (std::size_t p = 1; p < kept; p += 2) {
      const auto other = static_cast<std::size_t>(draw_.below(static_cast<int>(p)));
      if (ports_.a->kind != Kind::floating || draw_.below(4) == 0) continue;
      dot.a[p] = dot.a[other] ^ ports_.a->sign_bit();
      dot.b[p] = dot.b[other];
    }
  }

  const Ports& ports_;
  int kind_;
  Draws draw_;
};

}  // namespace

std::vector<AskedDot> random_questions(const Ports& ports, std::uint64_t seed, std::uint64_t first,
                                       std::size_t count) {
  std::vector<AskedDot> questions;
  questions.reserve(count);
  for (std::uint64_t i = first; i < first + count; ++i)
    questions.push_back({kKinds[i % kKinds.size()], RandomDot(ports, seed, i).make()});
  return questions;
}

namespace {

/// The ends of the register, left and reached again in every way.
void add_integer_questions(Sheet& all) {
  const Ports& ports = all.ports();
  const std::int64_t most = (std::int64_t{1} << (ports.bits - 1)) - 1;
  std::vector<std::int64_t> products;
  for (const std::int64_t p : {1, -1, 2, -2, 100, -100}) products.push_back(p);
  for (const std::int64_t c : {most, -most - 1, most - 1, -most, std::int64_t{0}}) {
    all.add("overflow", all.draft().c(number(c)));
    for (const std::int64_t p : products) {
      for (int j = 0; j < ports.kept(); j = j < 4 ? j + 1 : 2 * j) {
        all.add("overflow", all.draft().c(number(c)).product(j, number(p)));
        for (const std::int64_t q : products)
          all.add("overflow",
                  all.draft().c(number(c)).product(0, number(p)).product(j + 1, number(q)));
      }
      Draft every = all.draft();
      every.c(number(c));
      for (int j = 0; j < ports.kept(); ++j) every.product(j, number(p));
      all.add("overflow", every);
    }
  }
}

}  // namespace

std::vector<AskedDot> constructed_questions(const Ports& ports) {
  const bool floats = ports.d != nullptr && ports.c != nullptr && ports.a->kind == Kind::floating &&
                      ports.b->kind == Kind::floating;
  Sheet all(ports);
  add_probes(all);
  floats ? FloatingQuestions(all).make() : add_integer_questions(all);
  return all.take();
}

std::vector<AskedDot> question_pool(const Ports& ports, std::uint64_t seed, std::size_t block) {
  constexpr std::size_t kRandom = 240;
  std::vector<AskedDot> all = constructed_questions(ports);
  for (AskedDot& question : random_questions(ports, seed, 0, kRandom))
    all.push_back(std::move(question));
  std::vector<AskedDot> mixed;
  mixed.reserve(all.size());
  const std::size_t blocks = (all.size() + block - 1) / block;
  for (std::size_t first = 0; first < blocks; ++first) {
    for (std::size_t i = first; i < all.size(); i += blocks) mixed.push_back(std::move(all[i]));
  }
  return mixed;
}

}  // namespace numemu::oracle
