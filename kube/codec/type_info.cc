#include "kube/codec/type_info.h"

#include <memory>
#include <mutex>
#include <shared_mutex>

namespace bimetal::kube {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

class Table {
 public:
  const TypeInfo& Find(const Descriptor* descriptor) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto it = types_.find(descriptor); it != types_.end()) return *it->second;
    }
    const std::unique_lock lock(mutex_);
    return Add(descriptor);
  }

 private:
  // REQUIRES mutex_ held. Entered before it is filled, so that types may refer to themselves.
  const TypeInfo& Add(const Descriptor* descriptor) {
    if (const auto it = types_.find(descriptor); it != types_.end()) return *it->second;
    TypeInfo& info = *types_.emplace(descriptor, std::make_unique<TypeInfo>()).first->second;
    info.descriptor = descriptor;
    info.is_kind = descriptor->options().HasExtension(api::kind);
    for (int i = 0; i < descriptor->field_count(); ++i) AddField(info, descriptor->field(i));
    info.is_array = descriptor->field_count() == 1 && info.fields.size() == 1 &&
                    descriptor->field(0)->is_repeated() && descriptor->field(0)->name() == "items";
    for (std::size_t i = 0; i < info.fields.size(); ++i) {
      info.by_name.emplace(info.fields[i].json_name, i);
    }
    return info;
  }

  void AddField(TypeInfo& info, const FieldDescriptor* field) {
    const api::FieldRules& rules = field->options().GetExtension(api::field);
    if (rules.format() == api::RAW) {
      info.raw = field;
      return;
    }
    FieldInfo entry{field, field->json_name(), rules.format(), rules.required(), nullptr};
    const FieldDescriptor* value = field->is_map() ? field->message_type()->map_value() : field;
    if (value->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      entry.child = &Add(value->message_type());
    }
    info.fields.push_back(entry);
  }

  std::shared_mutex mutex_;
  std::unordered_map<const Descriptor*, std::unique_ptr<TypeInfo>> types_;
};

}  // namespace

const TypeInfo& TypeInfoOf(const Descriptor* descriptor) {
  static Table* const table = new Table;  // never destroyed: threads may still decode at exit
  return table->Find(descriptor);
}

}  // namespace bimetal::kube
