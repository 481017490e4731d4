#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <google/protobuf/message.h>

#include "kube/client/resource.h"

namespace bimetal::kube {

using ObjectPtr = std::shared_ptr<const google::protobuf::Message>;

// What an informer has told its caller: the objects by name, each with its uid. Turns what the
// server says into upserts and deletes that are consistent: no event of an old uid touches the
// object that now bears its name, and what a list no longer holds is deleted. One thread.
class InformerStore {
 public:
  // Called for every change, in order. `is_delete`: `object` is its last known state.
  using Emit = std::function<void(bool is_delete, const std::string& key, ObjectPtr object)>;

  explicit InformerStore(Emit emit) : emit_(std::move(emit)) {}

  // A list begins: what it does not name until EndList() is gone.
  void BeginList();
  // An object that a list or a watch shows. Late news (an older version, a uid that is gone) is
  // dropped.
  void Upsert(ObjectPtr object);
  // A listed object that could not be decoded: it exists, so it is not taken for deleted.
  void Keep(const std::string& key);
  void EndList();
  // A watch says that the object is gone.
  void Delete(ObjectPtr object);

  std::size_t size() const { return objects_.size(); }

 private:
  struct Entry {
    ObjectKey key;
    ObjectPtr object;
  };

  void Retire(const std::string& uid);
  void Remove(std::map<std::string, Entry>::iterator it, ObjectPtr last);

  Emit emit_;
  std::map<std::string, Entry> objects_;
  std::set<std::string> listed_;
  // The last uids that are gone; an object never comes back under its uid.
  std::set<std::string> retired_;
  std::deque<std::string> retired_order_;
};

}  // namespace bimetal::kube
