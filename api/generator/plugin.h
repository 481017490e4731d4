#pragma once

#include <google/protobuf/compiler/code_generator.h>

#include <string>
#include <vector>

namespace bimetal::api {

// protoc-gen-bimetal-crd: writes crds/<group>_<plural>.yaml for every kind of the given files, and
// api.md, the reference page of all of them. Thread-safe: it has no state.
class CrdGenerator : public google::protobuf::compiler::CodeGenerator {
 public:
  bool GenerateAll(const std::vector<const google::protobuf::FileDescriptor*>& files,
                   const std::string& parameter,
                   google::protobuf::compiler::GeneratorContext* context,
                   std::string* error) const override;
  bool Generate(const google::protobuf::FileDescriptor* file, const std::string& parameter,
                google::protobuf::compiler::GeneratorContext* context,
                std::string* error) const override;
  std::uint64_t GetSupportedFeatures() const override { return FEATURE_PROTO3_OPTIONAL; }
};

}  // namespace bimetal::api
