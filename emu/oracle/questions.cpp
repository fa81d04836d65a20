#include "emu/oracle/questions.hpp"

#include "emu/oracle/floating_questions.hpp"
#include "emu/oracle/probes/families.hpp"

namespace numemu::oracle {
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

std::vector<Question> constructed_questions(const Ports& ports) {
  const bool floats = ports.d != nullptr && ports.c != nullptr && ports.a->kind == Kind::floating &&
                      ports.b->kind == Kind::floating;
  Sheet all(ports);
  add_probes(all);
  floats ? FloatingQuestions(all).make() : add_integer_questions(all);
  return all.take();
}

std::vector<Question> question_pool(const Ports& ports, std::uint64_t seed, std::size_t block) {
  constexpr std::size_t kRandom = 240;
  std::vector<Question> all = constructed_questions(ports);
  for (Question& question : random_questions(ports, seed, 0, kRandom))
    all.push_back(std::move(question));
  std::vector<Question> mixed;
  mixed.reserve(all.size());
  const std::size_t blocks = (all.size() + block - 1) / block;
  for (std::size_t first = 0; first < blocks; ++first) {
    for (std::size_t i = first; i < all.size(); i += blocks) mixed.push_back(std::move(all[i]));
  }
  return mixed;
}

}  // namespace numemu::oracle
