#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "core/placement/gang.h"
#include "core/placement/shape.h"
#include "tests/unit/core/random_fleet.h"

namespace bimetal::core::placement {
namespace {

using testing::Random;

constexpr int kRounds = 1000;
const std::vector<std::string> kKeys = {"zone", "rack"};

// A node that jobs can use, most of the time.
Node SoundNode(Random& random, int number) {
  testing::NodeBuilder node("n" + std::to_string(number));
  node.Gpus(Vendor::kNvidia, 1 + random.Up(8));
  if (random.OneIn(12)) node.Cordoned();
  if (random.OneIn(6)) node.Cpu(1000 * (1 + random.Up(16)));
  if (random.OneIn(4)) node.Label("disk", "fast");
  return node;
}

// A small fleet with labels, some missing, and a gang with wishes. `most_pods` bounds the gang so
// that all its places can be tried.
struct Case {
  std::vector<Node> nodes;
  std::vector<Pod> pods;
  Job job;

  explicit Case(std::uint64_t seed, int most_pods = 20, int most_roles = 3) {
    Random random(seed);
    const int count = 1 + random.Up(8);
    for (int i = 0; i < count; ++i) {
      Node node = random.OneIn(4) ? testing::RandomNode(random, i) : SoundNode(random, i);
      if (!random.OneIn(8)) node.labels["zone"] = "z" + std::to_string(random.Up(2));
      if (!random.OneIn(8)) node.labels["rack"] = "r" + std::to_string(random.Up(3));
      nodes.push_back(std::move(node));
    }
    const int held = random.Up(8);
    for (int i = 0; i < held; ++i) pods.push_back(testing::RandomPod(random, i, count));
    testing::JobBuilder builder("j");
    builder.On(Vendor::kNvidia, 1 + random.Up(2));
    const int roles = 1 + random.Up(most_roles);
    for (int i = 0; i < roles; ++i) {
      builder.Pods(1 + random.Up(std::max(1, most_pods / roles)), 500 * random.Up(8),
                   "r" + std::to_string(i));
      if (random.OneIn(3)) builder.Tolerating("dedicated");
      if (random.OneIn(6)) builder.Selecting("disk", "fast");
      if (random.OneIn(4)) continue;
      builder.Topology(random.OneIn(4)   ? std::string("node")
                       : random.OneIn(3) ? std::string("zone")
                                         : std::string("rack"),
                       static_cast<TopologyMode>(random.Up(3)));
    }
    job = builder;
  }
  const Variant& variant() const { return job.variants.front(); }
  GangResult Place() const { return PlaceGang(job, variant(), nodes, MakeBooks(pods), kKeys); }
  const Node& NodeNamed(const NodeName& name) const {
    return *std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.name == name; });
  }
};

// The domain of a node by its labels alone; nullopt: it is in none.
std::optional<std::string> DomainOf(const Node& node, const std::string& level) {
  if (level == kNodeLevel) return node.name.value;
  std::string path;
  for (const std::string& key : kKeys) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end()) return std::nullopt;
    path += "/" + label->second;
    if (key == level) return path;
  }
  return std::nullopt;
}

// By the public rules only: whether one more pod of the role can go to the node where `use` is
// held.
bool MayRun(const Case& c, const Node& node, const Role& role) {
  const auto devices = node.devices.find(c.variant().vendor);
  return node.ready && !node.cordoned && devices != node.devices.end() &&
         std::all_of(node.taints.begin(), node.taints.end(),
                     [&](const Taint& t) { return Tolerates(role.tolerations, t); }) &&
         std::all_of(role.node_selector.begin(), role.node_selector.end(),
                     [&](const auto& s) {
                       const auto label = node.labels.find(s.first);
                       return label != node.labels.end() && label->second == s.second;
                     }) &&
         std::all_of(devices->second.devices.begin(), devices->second.devices.end(),
                     [&](const Device& d) { return !d.open || Matches(d, c.variant()); });
}

bool CanTake(const Case& c, const Node& node, const Role& role, const NodeUse& use) {
  const Vendor vendor = c.variant().vendor;
  const auto held = use.held.find(vendor);
  const std::int64_t in_use = held == use.held.end() ? 0 : WholeDevices(held->second);
  return MayRun(c, node, role) &&
         UsableDevices(node, vendor) - in_use >= c.variant().devices_per_pod &&
         Fits(role.requests, node.allocatable, use.used);
}

// The most pods of the role in one domain that Spread allows.
std::int64_t ShareOf(const Case& c, const Role& role) {
  std::set<std::string> domains;
  for (const Node& node : c.nodes) {
    const auto domain = DomainOf(node, role.topology->level);
    if (domain && MayRun(c, node, role) &&
        UsableDevices(node, c.variant().vendor) >= c.variant().devices_per_pod) {
      domains.insert(*domain);
    }
  }
  const auto count = static_cast<std::int64_t>(domains.size());
  return count == 0 ? 0 : (role.replicas + count - 1) / count;
}

bool Has(const Role& role, TopologyMode mode) {
  return role.topology && role.topology->mode == mode;
}

// Empty where `pods` keep every promise of the job's topology.
std::string BrokenPromise(const Case& c, const std::vector<PodPlacement>& pods) {
  std::map<std::string, std::set<std::string>> required;  // level -> domains
  std::map<std::pair<std::size_t, std::string>, std::int64_t> spread;
  for (const PodPlacement& pod : pods) {
    const Role& role = c.job.roles[pod.role];
    if (!Has(role, TopologyMode::kRequired) && !Has(role, TopologyMode::kSpread)) continue;
    const auto domain = DomainOf(c.NodeNamed(pod.node), role.topology->level);
    if (!domain) return pod.node.value + " is in no domain of " + role.topology->level;
    if (Has(role, TopologyMode::kRequired)) {
      required[role.topology->level].insert(*domain);
    } else if (++spread[{pod.role, *domain}] > ShareOf(c, role)) {
      return "too many pods of " + role.name + " in " + *domain;
    }
  }
  for (const auto& [level, domains] : required) {
    if (domains.size() > 1) return "more than one domain of " + level;
  }
  return "";
}

// Whether some place for the gang exists, found by trying all of them.
class Oracle {
 public:
  explicit Oracle(const Case& c) : c_(c), books_(MakeBooks(c.pods)) {
    for (const Role& role : c.job.roles) {
      share_.push_back(Has(role, TopologyMode::kSpread) ? ShareOf(c, role) : 0);
    }
  }
  bool Exists() { return From(0, 0, 0); }

 private:
  // Pods of a role are alike, so only places in the order of the nodes are tried.
  bool From(std::size_t role_index, std::int64_t index, std::size_t first_node) {
    if (role_index == c_.job.roles.size()) return true;
    const Role& role = c_.job.roles[role_index];
    if (index == role.replicas) return From(role_index + 1, 0, 0);
    for (std::size_t i = first_node; i < c_.nodes.size(); ++i) {
      const Node& node = c_.nodes[i];
      NodeUse& use = books_[node.name];
      if (!CanTake(c_, node, role, use) || !Permits(role_index, node)) continue;
      const NodeUse before = use;
      use.used = use.used + role.requests;
      use.held[c_.variant().vendor].v += c_.variant().devices_per_pod * kWholeDevice.v;
      placed_.push_back({role_index, i});
      const bool found = From(role_index, index + 1, i);
      placed_.pop_back();
      books_[node.name] = before;
      if (found) return true;
    }
    return false;
  }
  bool Permits(std::size_t role_index, const Node& node) const {
    const Role& role = c_.job.roles[role_index];
    if (!role.topology || role.topology->mode == TopologyMode::kPreferred) return true;
    const auto domain = DomainOf(node, role.topology->level);
    if (!domain) return false;
    std::int64_t same = 0;
    for (const auto& [other_index, other_node] : placed_) {
      const Role& other = c_.job.roles[other_index];
      const auto other_domain = DomainOf(c_.nodes[other_node], role.topology->level);
      if (Has(role, TopologyMode::kRequired) && Has(other, TopologyMode::kRequired) &&
          other.topology->level == role.topology->level && other_domain != domain) {
        return false;
      }
      same += other_index == role_index && other_domain == domain ? 1 : 0;
    }
    return !Has(role, TopologyMode::kSpread) || same < share_[role_index];
  }

  const Case& c_;
  Books books_;
  std::vector<std::int64_t> share_;
  std::vector<std::pair<std::size_t, std::size_t>> placed_;
};

TEST(TopologyProperty, AGangIsWholeAndKeepsEveryPromise) {
  int placed = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Case c(seed);
    const auto result = c.Place();
    EXPECT_EQ(result.pods.empty(), result.obstacle != Obstacle::kNone) << seed;
    EXPECT_EQ(result.pods.empty(), !result.unblocked_by.empty()) << seed;
    if (result.pods.empty()) {
      ++refused;
      continue;
    }
    ++placed;
    EXPECT_EQ(static_cast<std::int64_t>(result.pods.size()), PodCount(c.job)) << seed;
    EXPECT_EQ(BrokenPromise(c, result.pods), "") << seed;
    Books books = MakeBooks(c.pods);
    for (const PodPlacement& pod : result.pods) {
      const Role& role = c.job.roles[pod.role];
      NodeUse& use = books[pod.node];
      EXPECT_TRUE(CanTake(c, c.NodeNamed(pod.node), role, use)) << seed;
      use.used = use.used + role.requests;
      use.held[c.variant().vendor].v += c.variant().devices_per_pod * kWholeDevice.v;
    }
  }
  EXPECT_GT(placed, kRounds / 10);  // the generator must not make the property empty
  EXPECT_GT(refused, kRounds / 10);
}

TEST(TopologyProperty, TheOrderOfNodesAndPodsDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Case c(seed);
    const auto forward = c.Place();
    Random random(seed + 1'000'000);
    random.Shuffle(c.nodes);
    random.Shuffle(c.pods);
    const auto shuffled = c.Place();
    EXPECT_EQ(forward.pods, shuffled.pods) << seed;
    EXPECT_EQ(forward.obstacle, shuffled.obstacle) << seed;
    EXPECT_EQ(forward.unblocked_by, shuffled.unblocked_by) << seed;
  }
}

TEST(TopologyProperty, AGangOfOneRoleIsPlacedWheneverAPlaceExists) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Case c(seed, 8, 1);
    const bool exists = Oracle(c).Exists();
    found += exists ? 1 : 0;
    EXPECT_EQ(!c.Place().pods.empty(), exists) << seed;
  }
  EXPECT_GT(found, kRounds / 5);
}

// Greedy by role is not complete; this says how far from it.
TEST(TopologyProperty, AGangOfSeveralRolesIsRarelyMissed) {
  int found = 0, missed = 0;
  for (std::uint64_t seed = 0; seed < 3 * kRounds; ++seed) {
    const Case c(seed, 6, 3);
    if (c.job.roles.size() < 2) continue;
    const bool exists = Oracle(c).Exists();
    const bool placed = !c.Place().pods.empty();
    EXPECT_TRUE(exists || !placed) << seed;
    found += exists ? 1 : 0;
    missed += exists && !placed ? 1 : 0;
  }
  RecordProperty("feasible", found);
  RecordProperty("missed", missed);
  EXPECT_GT(found, kRounds / 2);
  EXPECT_LE(missed * 1000, found * 5) << missed << " of " << found;  // half a per cent
}

// Pods that fit into each domain of the level, those of nodes in none apart.
std::map<std::string, std::int64_t> RoomByDomain(const Case& c, const std::string& level) {
  std::map<std::string, std::int64_t> room;
  const Books books = MakeBooks(c.pods);
  const Role& role = c.job.roles.front();
  for (const Node& node : c.nodes) {
    const auto use = books.find(node.name);
    NodeUse now = use == books.end() ? NodeUse{} : use->second;
    while (CanTake(c, node, role, now)) {
      now.used = now.used + role.requests;
      now.held[c.variant().vendor].v += c.variant().devices_per_pod * kWholeDevice.v;
      ++room[DomainOf(node, level).value_or("")];
    }
  }
  return room;
}

TEST(TopologyProperty, PreferredUsesTheFewestZones) {
  int several = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Case c(seed, 20, 1);
    c.job.roles.front().topology = RoleTopology{.level = "zone", .mode = TopologyMode::kPreferred};
    const auto result = c.Place();
    if (result.pods.empty()) continue;
    std::set<std::string> used;
    for (const auto& pod : result.pods) {
      used.insert(DomainOf(c.NodeNamed(pod.node), "zone").value_or(""));
    }
    const auto room = RoomByDomain(c, "zone");
    std::vector<std::int64_t> sizes;
    for (const auto& [domain, fit] : room) {
      if (!domain.empty()) sizes.push_back(fit);
    }
    std::sort(sizes.rbegin(), sizes.rend());
    std::int64_t left = PodCount(c.job);
    std::size_t fewest = 0;
    while (left > 0 && fewest < sizes.size()) left -= sizes[fewest++];
    EXPECT_EQ(used.size() - used.count(""), fewest) << seed;
    EXPECT_EQ(used.count("") > 0, left > 0) << seed;
    several += fewest > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 20);
}

TEST(TopologyProperty, SpreadIsAsEvenAsTheRoomAllows) {
  int uneven = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Case c(seed, 12, 1);
    c.job.roles.front().topology = RoleTopology{.level = "rack", .mode = TopologyMode::kSpread};
    const auto result = c.Place();
    if (result.pods.empty()) continue;
    std::map<std::string, std::int64_t> pods;
    for (const auto& pod : result.pods) ++pods[*DomainOf(c.NodeNamed(pod.node), "rack")];
    std::int64_t most = 0;
    for (const auto& [domain, count] : pods) most = std::max(most, count);
    // A domain has two fewer than another only where it is full.
    for (const auto& [domain, room] : RoomByDomain(c, "rack")) {
      if (domain.empty() || pods[domain] + 1 >= most) continue;
      EXPECT_EQ(pods[domain], room) << seed;
      ++uneven;
    }
  }
  EXPECT_GT(uneven, 5);
}

TEST(TopologyProperty, WaitingForTopologyMeansThatTheSameGangFitsWithoutIt) {
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 3 * kRounds; ++seed) {
    Case c(seed);
    if (c.Place().obstacle != Obstacle::kWaitingForTopology) continue;
    ++seen;
    for (Role& role : c.job.roles) role.topology.reset();
    EXPECT_FALSE(c.Place().pods.empty()) << seed;
  }
  EXPECT_GT(seen, 10);
}

}  // namespace
}  // namespace bimetal::core::placement
