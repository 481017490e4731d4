#include "core/queue/record.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace bimetal::core::queue {
namespace {

// One list of the fields of each type serves both directions: `a(name, field)` for each.
template <class A>
void Fields(A& a, Resources& r) {
  a("cpu", r.cpu_milli), a("memory", r.memory_bytes), a("pods", r.pods);
}
template <class A>
void Fields(A& a, Taint& t) {
  a("key", t.key), a("value", t.value), a("effect", t.effect);
}
template <class A>
void Fields(A& a, Toleration& t) {
  a("key", t.key), a("op", t.op), a("value", t.value), a("effect", t.effect);
}
template <class A>
void Fields(A& a, Device& d) {
  a("id", d.id), a("model", d.model), a("memory", d.memory_bytes), a("capacity", d.capacity);
  a("open", d.open);
}
template <class A>
void Fields(A& a, NodeDevices& d) {
  a("pool", d.pool), a("devices", d.devices), a("offered", d.offered);
  a("precisions", d.precisions), a("level", d.validation_level);
}
template <class A>
void Fields(A& a, Node& n) {
  a("name", n.name), a("labels", n.labels), a("taints", n.taints), a("ready", n.ready);
  a("cordoned", n.cordoned), a("allocatable", n.allocatable), a("devices", n.devices);
}
template <class A>
void Fields(A& a, DeviceClass& c) {
  a("name", c.name), a("models", c.models);
}
template <class A>
void Fields(A& a, Pool& p) {
  a("name", p.name), a("vendor", p.vendor), a("selector", p.node_selector);
  a("resource", p.resource_name), a("classes", p.device_classes), a("topology", p.topology_keys);
}
template <class A>
void Fields(A& a, QuotaLine& q) {
  a("class", q.device_class), a("guaranteed", q.guaranteed), a("limit", q.limit);
  a("lending", q.lending_limit);
}
template <class A>
void Fields(A& a, FairShare& f) {
  a("weight", f.weight), a("halfLife", f.half_life);
}
template <class A>
void Fields(A& a, QueuePreemption& p) {
  a("within", p.within_queue), a("reclaim", p.reclaim), a("minRuntime", p.min_runtime);
  a("maxPerHour", p.max_evictions_per_hour);
}
template <class A>
void Fields(A& a, Queue& q) {
  a("name", q.name), a("parent", q.parent), a("namespaces", q.namespace_selector);
  a("quotas", q.quotas), a("total", q.total_limit), a("order", q.order);
  a("starvation", q.starvation_bound), a("fairShare", q.fair_share);
  a("preemption", q.preemption), a("maxDevices", q.max_devices_per_job);
  a("maxDuration", q.max_duration_per_job), a("maxRunning", q.max_running_jobs);
  a("stop", q.stop);
}
template <class A>
void Fields(A& a, PodOfJob& p) {
  a("job", p.job), a("attempt", p.attempt), a("role", p.role), a("index", p.index);
}
template <class A>
void Fields(A& a, Pod& p) {
  a("uid", p.uid), a("namespace", p.name_space), a("name", p.name), a("node", p.node);
  a("requests", p.requests), a("devices", p.devices), a("of", p.of_job);
}
template <class A>
void Fields(A& a, Variant& v) {
  a("name", v.name), a("vendor", v.vendor), a("devicesPerPod", v.devices_per_pod);
  a("models", v.models), a("minMemory", v.min_memory_bytes), a("precisions", v.precisions);
  a("level", v.min_validation_level), a("throughput", v.relative_throughput_milli);
  a("maxPrice", v.max_nano_per_hour);
}
template <class A>
void Fields(A& a, NodeRequirement& r) {
  a("key", r.key), a("op", r.op), a("values", r.values);
}
template <class A>
void Fields(A& a, NodeTerm& t) {
  a("labels", t.labels), a("fields", t.fields);
}
template <class A>
void Fields(A& a, RoleTopology& t) {
  a("level", t.level), a("mode", t.mode);
}
template <class A>
void Fields(A& a, Role& r) {
  a("name", r.name), a("replicas", r.replicas), a("requests", r.requests);
  a("tolerations", r.tolerations), a("selector", r.node_selector);
  a("minReplicas", r.min_replicas), a("topology", r.topology);
  a("affinity", r.node_affinity), a("avoid", r.avoid);
}
// What decides nothing (retry, budget, checkpoint) is left out.
template <class A>
void Fields(A& a, Job& j) {
  a("uid", j.uid), a("namespace", j.name_space), a("name", j.name), a("queue", j.queue);
  a("priority", j.priority), a("created", j.created), a("variants", j.variants);
  a("roles", j.roles), a("selection", j.selection), a("fallbackAfter", j.fallback_after);
  a("maxDuration", j.max_duration), a("estimated", j.estimated_duration);
  a("waitingSince", j.waiting_since);
}
template <class A>
void Fields(A& a, Place& p) {
  a("node", p.node), a("devices", p.devices), a("requests", p.requests);
}
template <class A>
void Fields(A& a, Running& r) {
  a("job", r.job), a("namespace", r.name_space), a("name", r.name), a("queue", r.queue);
  a("priority", r.priority), a("created", r.created), a("vendor", r.vendor), a("pool", r.pool);
  a("devices", r.devices), a("places", r.places), a("started", r.started);
  a("checkpointed", r.checkpointed), a("expectedEnd", r.expected_end);
  a("latestEnd", r.latest_end), a("evictable", r.evictable), a("yieldsFirst", r.yields_first);
  a("ending", r.ending);
}
template <class A>
void Fields(A& a, placement::PodPlacement& p) {
  a("role", p.role), a("index", p.index), a("node", p.node);
}
template <class A>
void Fields(A& a, Hold& h) {
  a("job", h.job), a("variant", h.variant), a("pool", h.pool), a("class", h.device_class);
  a("pods", h.pods), a("awaits", h.awaits), a("byEviction", h.by_eviction), a("at", h.at);
  a("since", h.since);
}
template <class A>
void Fields(A& a, PastUse& p) {
  a("queue", p.queue), a("devices", p.devices), a("from", p.from), a("to", p.to);
}
template <class A>
void Fields(A& a, PastEviction& p) {
  a("queue", p.queue), a("at", p.at);
}
template <class A>
void Fields(A& a, order::DevicePrice& p) {
  a("vendor", p.vendor), a("model", p.model), a("nanoPerHour", p.nano_per_hour);
}
template <class A>
void Fields(A& a, PoolPrices& p) {
  a("pool", p.pool), a("prices", p.prices);
}
template <class A>
void Fields(A& a, Snapshot& s) {
  a("now", s.now), a("nodes", s.nodes), a("pools", s.pools), a("queues", s.queues);
  a("namespaces", s.namespaces), a("pods", s.pods), a("running", s.running), a("jobs", s.pending);
  a("holds", s.holds), a("pastUse", s.past_use), a("pastEvictions", s.past_evictions);
  a("prices", s.prices), a("settling", s.settling);
}
template <class A>
void Fields(A& a, Assignment& x) {
  a("job", x.job), a("variant", x.variant), a("pool", x.pool), a("devices", x.devices);
  a("pods", x.pods);
}
template <class A>
void Fields(A& a, Eviction& e) {
  a("job", e.job), a("for", e.for_job), a("message", e.message);
}
template <class A>
void Fields(A& a, VariantBlocker& b) {
  a("variant", b.variant), a("reason", b.reason), a("need", b.need), a("free", b.free);
  a("unblockedBy", b.unblocked_by);
}
template <class A>
void Fields(A& a, StartEstimate& e) {
  a("earliest", e.earliest), a("latest", e.latest);
}
template <class A>
void Fields(A& a, Refusal& r) {
  a("job", r.job), a("reason", r.reason), a("message", r.message), a("never", r.never);
  a("blockers", r.blockers), a("ahead", r.ahead), a("of", r.of), a("estimate", r.estimate);
}
template <class A>
void Fields(A& a, Plan& p) {
  a("assignments", p.assignments), a("refusals", p.refusals), a("evictions", p.evictions);
  a("holds", p.holds), a("evaluations", p.evaluations);
}

class Writer {
 public:
  std::string out;

  template <class T>
  void operator()(const char* name, T& field) {
    if (out.back() != '{') out += ',';
    AppendQuoted(name, &out);
    out += ':';
    Write(field);
  }
  void Write(bool value) { out += value ? "true" : "false"; }
  void Write(std::string& value) { AppendQuoted(value, &out); }
  template <class Tag>
  void Write(Id<Tag>& id) {
    Write(id.value);
  }
  void Write(Millis value) { Write(value.v); }
  void Write(MilliDevice value) { Write(value.v); }
  void Write(TimePoint value) { Write(value.ms); }
  template <class T>
  void Write(Shared<T>& value) {
    Write(value.Edit());
  }
  template <class T>
  void Write(std::optional<T>& value) {
    if (value) return Write(*value);
    out += "null";
  }
  template <class T>
  void Write(std::vector<T>& values) {
    out += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ',';
      Write(values[i]);
    }
    out += ']';
  }
  // As a list of names and values, one after the other.
  template <class K, class V>
  void Write(std::map<K, V>& values) {
    out += '[';
    for (auto& [key, value] : values) {
      if (out.back() != '[') out += ',';
      K copy = key;
      Write(copy);
      out += ',';
      Write(value);
    }
    out += ']';
  }
  template <class T>
  void Write(T& value) {
    if constexpr (std::is_enum_v<T>) {
      out += std::to_string(static_cast<int>(value));
    } else if constexpr (std::is_integral_v<T>) {
      out += std::to_string(value);
    } else {
      out += '{';
      Fields(*this, value);
      out += '}';
    }
  }
};

class Reader {
 public:
  explicit Reader(const Json& object) : object_(&object) {}
  std::string error;  // of the first field that is wrong, with its path

  template <class T>
  void operator()(const char* name, T& field) {
    if (!error.empty()) return;
    const Json* value = object_->Find(name);
    if (value == nullptr) return;
    error = Read(*value, field);
    if (!error.empty()) error = Join(name, error);
  }

 private:
  static std::string Join(const std::string& name, const std::string& rest) {
    return name + (rest.front() == '[' || rest.front() == ':' ? "" : ".") + rest;
  }
  static std::string Expected(const Json& json, Json::Type type, const char* what) {
    return json.type == type ? std::string() : ": expected " + std::string(what);
  }
  static std::string Read(const Json& json, bool& value) {
    value = json.boolean;
    return Expected(json, Json::Type::kBool, "true or false");
  }
  static std::string Read(const Json& json, std::string& value) {
    value = json.string;
    return Expected(json, Json::Type::kString, "a text");
  }
  template <class Tag>
  static std::string Read(const Json& json, Id<Tag>& id) {
    return Read(json, id.value);
  }
  static std::string Read(const Json& json, Millis& value) { return Read(json, value.v); }
  static std::string Read(const Json& json, MilliDevice& value) { return Read(json, value.v); }
  static std::string Read(const Json& json, TimePoint& value) { return Read(json, value.ms); }
  template <class T>
  static std::string Read(const Json& json, Shared<T>& value) {
    return Read(json, value.Edit());
  }
  template <class T>
  static std::string Read(const Json& json, std::optional<T>& value) {
    value.reset();
    if (json.type == Json::Type::kNull) return "";
    return Read(json, value.emplace());
  }
  template <class T>
  static std::string Read(const Json& json, std::vector<T>& values) {
    values.clear();
    if (json.type != Json::Type::kArray) return ": expected a list";
    for (std::size_t i = 0; i < json.items.size(); ++i) {
      const std::string wrong = Read(json.items[i], values.emplace_back());
      if (!wrong.empty()) return Join("[" + std::to_string(i) + "]", wrong);
    }
    return "";
  }
  template <class K, class V>
  static std::string Read(const Json& json, std::map<K, V>& values) {
    values.clear();
    if (json.type != Json::Type::kArray || json.items.size() % 2 != 0) {
      return ": expected a list of names and values";
    }
    for (std::size_t i = 0; i < json.items.size(); i += 2) {
      K key{};
      std::string wrong = Read(json.items[i], key);
      if (wrong.empty()) wrong = Read(json.items[i + 1], values[key]);
      if (!wrong.empty()) return Join("[" + std::to_string(i) + "]", wrong);
    }
    return "";
  }
  template <class T>
  static std::string Read(const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      // No enumeration of a cycle has more values.
      constexpr std::int64_t kMost = std::is_same_v<T, Vendor> ? 1 : 3;
      if (json.type != Json::Type::kInteger || json.integer < 0 || json.integer > kMost) {
        return ": expected the number of a choice";
      }
      value = static_cast<T>(json.integer);
      return "";
    } else if constexpr (std::is_integral_v<T>) {
      const bool fits = json.type == Json::Type::kInteger && std::in_range<T>(json.integer);
      if (!fits) return ": expected an integer";
      value = static_cast<T>(json.integer);
      return "";
    } else {
      if (json.type != Json::Type::kObject) return ": expected an object";
      Reader reader(json);
      Fields(reader, value);
      return reader.error;
    }
  }

  const Json* object_;
};

// What JobFromApi guarantees and a text need not keep.
Status CheckJobs(const Snapshot& snapshot) {
  for (std::size_t i = 0; i < snapshot.pending.size(); ++i) {
    const Job& job = snapshot.pending[i];
    const std::string path = "jobs[" + std::to_string(i) + "]";
    if (job.variants.empty() || job.roles.empty()) {
      return Fail(ErrorCode::kData, path + ": needs variants and roles");
    }
    for (const Variant& variant : job.variants) {
      if (variant.devices_per_pod >= 1 && variant.devices_per_pod <= 128) continue;
      return Fail(ErrorCode::kData, path + ".variants: devicesPerPod must be 1 to 128");
    }
    for (const Role& role : job.roles) {
      if (role.replicas >= 1 && role.replicas <= kMaxPodsOfJob) continue;
      return Fail(ErrorCode::kData,
                  path + ".roles: replicas must be 1 to " + std::to_string(kMaxPodsOfJob));
    }
  }
  return {};
}

template <class T>
std::string WriteCopy(T value) {
  Writer writer;
  writer.Write(value);
  return std::move(writer.out);
}

}  // namespace

std::string WriteSnapshot(const Snapshot& snapshot) { return WriteCopy(snapshot); }

std::string WritePlan(const Plan& plan) { return WriteCopy(plan); }

Result<Snapshot> ReadSnapshot(std::string_view text) {
  BIMETAL_TRY_ASSIGN(const Json json, ParseJson(text));
  return SnapshotFromJson(json);
}

Result<Snapshot> SnapshotFromJson(const Json& json) {
  if (json.type != Json::Type::kObject) {
    return Fail(ErrorCode::kData, "expected an object that was recorded as a cycle");
  }
  Snapshot snapshot;
  Reader reader(json);
  Fields(reader, snapshot);
  if (!reader.error.empty()) return Fail(ErrorCode::kData, reader.error);
  BIMETAL_TRY(CheckJobs(snapshot));
  return snapshot;
}

}  // namespace bimetal::core::queue
