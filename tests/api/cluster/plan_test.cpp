// How a sweep is split over tasks, and the scripts of it, character by character.
#include "api/cluster/plan.hpp"

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"

namespace numemu::plan_test {
namespace {

using namespace numemu::test;
using Catch::Contains;

api::ClusterRequest asked_of(std::int64_t tasks) {
  return {.program = "/opt/numemu/numemu-networks", .folder = "/home/it's me", .tasks = tasks};
}

TEST_CASE("an array and its last job, as sbatch reads them", "[fast]") {
  api::ClusterRequest asked = asked_of(12);
  asked.memory = std::int64_t{700} << 20;
  asked.threads = 4;
  asked.last = {"--gate", "top1>=0.9"};
  api::ClusterPlan plan =
      api::plan_tasks("my sweep", "/data/50% \"wide\"", {"sweep", "/home/a b.json"}, asked);
  plan.seconds = 1500;
  CHECK(api::array_script(plan) ==
        R"(#!/bin/bash
#SBATCH --job-name=numemu-my_sweep
#SBATCH --cpus-per-task=4
#SBATCH --array=0-11
#SBATCH --output="/data/50%% \"wide\"/slurm/%A_%a.log"
#SBATCH --mem=956M
#SBATCH --time=0-01:25:00
#SBATCH --requeue
#SBATCH --open-mode=append
cd '/home/it'\''s me' || exit
exec /opt/numemu/numemu-networks sweep '/home/a b.json' --out '/data/50% "wide"' --threads 4 --quiet --memory 734003200 --shard "$SLURM_ARRAY_TASK_ID/12"
)");
  plan.options = {"partition=long", "time=2:00:00", "mem=8G"};
  CHECK(api::last_script(plan) ==
        R"(#!/bin/bash
#SBATCH --job-name=numemu-my_sweep-last
#SBATCH --cpus-per-task=4
#SBATCH --output="/data/50%% \"wide\"/slurm/last_%j.log"
#SBATCH --partition=long
#SBATCH --time=2:00:00
#SBATCH --mem=8G
#SBATCH --requeue
#SBATCH --open-mode=append
cd '/home/it'\''s me' || exit
exec /opt/numemu/numemu-networks sweep '/home/a b.json' --out '/data/50% "wide"' --threads 4 --quiet --memory 734003200 --gate 'top1>=0.9'
)");
}

TEST_CASE("the lines of GNU parallel", "[fast]") {
  api::ClusterPlan plan = api::plan_tasks("s", "/d/{} x", {"sweep", "s.json"}, asked_of(3));
  plan.tasks = {0, 2};
  CHECK(api::parallel_lines(plan) ==
        "cd '/home/it'\\''s me' && exec /opt/numemu/numemu-networks sweep s.json --out '/d/{} x' "
        "--threads 1 --quiet --shard 0/3 >>'/d/{} x/parallel/0.log' 2>&1\n"
        "cd '/home/it'\\''s me' && exec /opt/numemu/numemu-networks sweep s.json --out '/d/{} x' "
        "--threads 1 --quiet --shard 2/3 >>'/d/{} x/parallel/2.log' 2>&1\n");
}

TEST_CASE("numbers of tasks as ranges", "[fast]") {
  CHECK(api::ranges_of({0, 1, 2, 3, 7, 9, 10}) == "0-3,7,9-10");
  CHECK(api::ranges_of({5}) == "5");
  CHECK(api::ranges_of({}).empty());
}

TEST_CASE("what a script cannot hold is refused", "[fast]") {
  const auto refused = [](const std::string& out, std::vector<std::string> options) {
    return message_of([&] {
      api::ClusterRequest asked = asked_of(1);
      asked.options = std::move(options);
      api::plan_tasks("s", out, {"sweep"}, asked);
    });
  };
  CHECK(refused("/d", {"partition=long"}).empty());
  CHECK_THAT(refused("/d\n#SBATCH --wrap", {}), Contains("--out: expected a text without control"));
  for (const char* option : {"long", "=x", "time=", "-p=long", "--partition=long", "a b=c"})
    CHECK_THAT(refused("/d", {option}), Contains("--sbatch: expected key=value"));
  CHECK_THAT(refused("/d", {"array=0-5"}), Contains("--sbatch: array is set by the plan"));
  CHECK_THAT(refused("/d", {"comment=a\tb"}), Contains("--sbatch: expected a text without"));
}

TEST_CASE("what sbatch refuses is told with what may help", "[fast]") {
  const Workplace w;
  const std::string program =
      w.file("sbatch", "#!/bin/sh\necho 'sbatch: error: no default partition' >&2\nexit 1\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (w.folder.path() + ":" + path).c_str(), 1);
  const std::string message = message_of([&] {
    api::submit(api::plan_tasks("s", w / "r", {"sweep", "s.json"}, asked_of(3)));
  });
  ::setenv("PATH", path.c_str(), 1);
  CHECK_THAT(message, Contains("no default partition; ") && Contains("--sbatch key=value") &&
                          Contains("--parallel"));
}

TEST_CASE("a sweep is split by its estimate; what is there is no task's", "[fast]") {
  Workplace w;
  experiments::testing::write_click_network(w / "n.safetensors");
  const std::string config =
      w.file("s.json", R"({"numemu_sweep": 1, "net": ")" + (w / "n.safetensors") +
                           R"(", "data": "clicks", "eval_images": 40,
              "grid": {"roles.weight.format": ["int8", "int7", "int6", "int5", "int4", "int3"]}})");
  // A clock whose seconds are hours: tasks are as many as points.
  double now = 0;
  w.context.clock = [&] { return now += 3600; };
  const api::SweepRequest request{.config = config, .out = w / "r", .predictions = false};
  const auto planned = [&](std::int64_t tasks, bool dry) {
    return api::plan_cluster(api::plan_sweep(request, w.context.folders), request, asked_of(tasks),
                             w.context, dry);
  };
  const api::ClusterPlan dry = planned(2, true);
  CHECK_FALSE(std::filesystem::exists(w / "r"));
  CHECK(dry.tasks == std::vector<std::int64_t>{0, 1});
  CHECK(dry.missing == 6);
  CHECK(dry.seconds > 0);
  CHECK(dry.limit_minutes() > 10);
  CHECK_THAT(api::array_script(dry), Contains("--no-predictions --out"));
  CHECK(planned(0, true).shards >= 1);
  CHECK_THAT(message_of([&] { planned(7, true); }),
             Contains("--tasks: expected at most the number of points, 6"));
  CHECK_THAT(message_of([&] {
               const api::SweepRequest shard{.config = config, .shard = "0/2"};
               api::plan_cluster(api::plan_sweep(shard, w.context.folders), shard, asked_of(2),
                                 w.context, true);
             }),
             Contains("--shard: expected none beside --slurm"));
  // The second of three tasks ends; the rows of it are taken over and it is not planned again.
  api::SweepRequest shard = request;
  shard.shard = "1/3";
  api::run_sweep(api::plan_sweep(shard, w.context.folders), w.context);
  const api::ClusterPlan rest = planned(3, false);
  CHECK(rest.tasks == std::vector<std::int64_t>{0, 2});
  CHECK(rest.missing == 4);
  CHECK(std::filesystem::exists(w / "r/rows.jsonl"));
  CHECK_FALSE(std::filesystem::exists(w / "r/rows.1.jsonl"));
}

TEST_CASE("tasks and a last run leave the bytes of one run", "[fast]") {
  const Workplace w;
  experiments::testing::write_click_network(w / "n.safetensors");
  const std::string config =
      w.file("s.json", R"({"numemu_sweep": 1, "net": ")" + (w / "n.safetensors") +
                           R"(", "data": "clicks", "eval_images": 40,
              "grid": {"roles.weight.format": ["int8", "int4", "int3"]}})");
  const auto run = [&](const std::string& out, const std::string& shard) {
    const api::SweepRequest request{.config = config, .out = w / out, .shard = shard};
    return api::run_sweep(api::plan_sweep(request, w.context.folders), w.context);
  };
  run("one", "0/1");
  run("r", "1/2");
  CHECK(run("r", "0/1").computed == 2);  // the last job computes what a lost task left
  CHECK(read_file(w / "r/rows.jsonl") == read_file(w / "one/rows.jsonl"));
  CHECK_FALSE(std::filesystem::exists(w / "r/rows.1.jsonl"));
}

}  // namespace
}  // namespace numemu::plan_test
