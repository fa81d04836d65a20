// Processes that share workers, here as threads: the same bits for any number of them.
#include "emu/net/train/ranks.hpp"

#include <barrier>
#include <exception>
#include <thread>

#include "emu/net/kept_bytes.hpp"
#include "emu/net/train/train.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::ranks_test {
namespace {

/// What the ranks of a job share: a message and a barrier, which ranks that fail leave.
struct Board {
  explicit Board(int count) : barrier(count) {}
  std::barrier<> barrier;
  std::string message;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Board& board, int count, int rank) : board_(board), count_(count), rank_(rank) {}
  std::int64_t count() const override { return count_; }
  std::int64_t rank() const override { return rank_; }
  void broadcast(std::int64_t owner, std::string& bytes) override {
    if (rank_ == owner) board_.message = bytes;
    board_.barrier.arrive_and_wait();
    bytes = board_.message;
    board_.barrier.arrive_and_wait();
  }

 private:
  Board& board_;
  std::int64_t count_, rank_;
};

/// Runs `body` on every rank. Returns what each threw, "" where nothing.
std::vector<std::string> on_ranks(int count, const std::function<void(Ranks&)>& body) {
  Board board(count);
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(board, count, rank);
      try {
        body(ranks);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
      board.barrier.arrive_and_drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TrainOptions four_workers() {
  TrainOptions options;
  options.epochs = 1;
  options.batch = 156;  // 640 samples: the last step has 16, parts of 2 and 1
  options.workers = 4;
  options.micro_batches = 3;
  return options;
}

struct Result {
  std::vector<std::vector<float>> values;
  std::vector<EpochMetrics> history;
  std::int64_t kept = 0;
};

Result trained(const Dataset& data, Ranks* ranks) {
  Graph graph = test::stateful_net(data);  // batch normalisation and dropout
  Numerics float32;
  KeptBytes numerics(float32);
  Result result;
  result.history = train(graph, data, four_workers(), numerics, {.ranks = ranks});
  for (const Parameter* parameter : graph.parameters())
    result.values.push_back(parameter->value.data);
  result.kept = numerics.of_epoch(0)->bytes;
  return result;
}

TEST_CASE("one to four ranks train the same bits", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const Result alone = trained(data, nullptr);
  REQUIRE(alone.history[0].wire.size() == alone.values.size());
  for (int count = 1; count <= 4; ++count) {
    std::vector<Result> results(static_cast<std::size_t>(count));
    const std::vector<std::string> errors = on_ranks(count, [&](Ranks& ranks) {
      results[static_cast<std::size_t>(ranks.rank())] = trained(data, &ranks);
    });
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
      INFO("rank " << rank << " of " << count);
      CHECK(errors[rank].empty());
      CHECK(results[rank].values == alone.values);
      CHECK(results[rank].kept == alone.kept);
      CHECK(results[rank].history[0].train_loss == alone.history[0].train_loss);
      CHECK(results[rank].history[0].gradient_norm == alone.history[0].gradient_norm);
      CHECK(results[rank].history[0].wire[0].sent == alone.history[0].wire[0].sent);
    }
  }
}

TEST_CASE("more ranks than workers are refused", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  for (const std::string& error : on_ranks(5, [&](Ranks& ranks) { trained(data, &ranks); }))
    CHECK_THAT(error, Catch::Contains("workers: expected at least as many as there are ranks, 5"));
}

TEST_CASE("ranks that train something else are refused", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const auto errors = on_ranks(2, [&](Ranks& ranks) {
    Graph graph = test::stateful_net(data);
    Numerics numerics;
    TrainOptions options = four_workers();
    if (ranks.rank() == 1) options.learning_rate = 0.5;
    train(graph, data, options, numerics, {.ranks = &ranks});
  });
  CHECK_THAT(errors[1], Catch::Contains("options or recipe differ between ranks 0 and 1"));
}

TEST_CASE("numerics that keep something between parts need one process", "[fast]") {
  class Counting final : public Numerics {
   public:
    void product(const Step& step, const Product& product) override {
      largest_ = std::max(largest_, step.part);
      Numerics::product(step, product);
    }
    void save_state(NamedState& state) const override {
      state.emplace_back("largest part", std::to_string(largest_));
    }

   private:
    std::int64_t largest_ = 0;
  };
  const Dataset data = test::synthetic_dataset();
  const auto errors = on_ranks(2, [&](Ranks& ranks) {
    Graph graph = test::stateful_net(data);
    Counting numerics;
    train(graph, data, four_workers(), numerics, {.ranks = &ranks});
  });
  CHECK_THAT(errors[1], Catch::Contains("state of the numerics after step 1 differ"));
}

TEST_CASE("workers go to ranks in runs of nearly equal length", "[fast]") {
  Board board(1);
  for (int count = 1; count <= 7; ++count) {
    const ThreadRanks ranks(board, count, 0);
    for (std::int64_t workers = count; workers <= 20; ++workers) {
      std::vector<std::int64_t> owned(static_cast<std::size_t>(count));
      for (std::int64_t w = 0; w < workers; ++w) {
        CHECK((w == 0 || ranks.owner(w, workers) >= ranks.owner(w - 1, workers)));
        ++owned.at(static_cast<std::size_t>(ranks.owner(w, workers)));
      }
      const auto [least, most] = std::ranges::minmax(owned);
      CHECK(most - least <= 1);
    }
  }
}

}  // namespace
}  // namespace numemu::net::ranks_test
