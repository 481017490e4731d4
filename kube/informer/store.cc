#include "kube/informer/store.h"

#include <charconv>
#include <utility>

namespace bimetal::kube {
namespace {

constexpr std::size_t kMaxRetired = 4096;

// Kubernetes promises since 1.35, and has always done for etcd, that resource versions of a kind
// are numbers that grow. Anything else is never older.
bool IsOlder(const std::string& a, const std::string& b) {
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  const auto l = std::from_chars(a.data(), a.data() + a.size(), left);
  const auto r = std::from_chars(b.data(), b.data() + b.size(), right);
  const bool both = l.ec == std::errc{} && l.ptr == a.data() + a.size() && r.ec == std::errc{} &&
                    r.ptr == b.data() + b.size();
  return both && left < right;
}

}  // namespace

void InformerStore::BeginList() { listed_.clear(); }

void InformerStore::Upsert(ObjectPtr object) {
  ObjectKey key = KeyOf(*object);
  const std::string text = key.Text();
  if (retired_.contains(key.uid)) return;
  listed_.insert(text);
  const auto it = objects_.find(text);
  if (it != objects_.end()) {
    if (IsOlder(key.resource_version, it->second.key.resource_version)) return;
    if (it->second.key.uid == key.uid) {
      if (it->second.key.resource_version == key.resource_version) return;
      it->second = Entry{std::move(key), object};
      emit_(false, text, std::move(object));
      return;
    }
    Remove(it, it->second.object);
  }
  objects_[text] = Entry{std::move(key), object};
  emit_(false, text, std::move(object));
}

void InformerStore::Keep(const std::string& key) { listed_.insert(key); }

void InformerStore::EndList() {
  for (auto it = objects_.begin(); it != objects_.end();) {
    const auto current = it++;
    if (!listed_.contains(current->first)) Remove(current, current->second.object);
  }
  listed_.clear();
}

void InformerStore::Delete(ObjectPtr object) {
  const ObjectKey key = KeyOf(*object);
  const auto it = objects_.find(key.Text());
  if (it != objects_.end() && it->second.key.uid == key.uid) {
    Remove(it, std::move(object));
    return;
  }
  // Never seen alive, or its name has passed on: closed once, for its own uid only.
  if (retired_.contains(key.uid)) return;
  Retire(key.uid);
  emit_(true, key.Text(), std::move(object));
}

void InformerStore::Remove(std::map<std::string, Entry>::iterator it, ObjectPtr last) {
  Retire(it->second.key.uid);
  const std::string text = it->first;
  objects_.erase(it);
  emit_(true, text, std::move(last));
}

void InformerStore::Retire(const std::string& uid) {
  if (uid.empty() || !retired_.insert(uid).second) return;
  retired_order_.push_back(uid);
  if (retired_order_.size() <= kMaxRetired) return;
  retired_.erase(retired_order_.front());
  retired_order_.pop_front();
}

}  // namespace bimetal::kube
