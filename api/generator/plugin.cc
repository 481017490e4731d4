#include "api/generator/plugin.h"

#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <memory>

#include "api/generator/crd.h"
#include "api/generator/reference.h"
#include "api/generator/yaml.h"
#include "api/options.pb.h"

namespace bimetal::api {
namespace {

void WriteFile(google::protobuf::compiler::GeneratorContext* context, const std::string& name,
               const std::string& content) {
  const std::unique_ptr<google::protobuf::io::ZeroCopyOutputStream> stream(context->Open(name));
  void* data = nullptr;
  int size = 0;
  std::size_t written = 0;
  while (written < content.size() && stream->Next(&data, &size)) {
    const auto part = std::min(static_cast<std::size_t>(size), content.size() - written);
    content.copy(static_cast<char*>(data), part, written);
    written += part;
    stream->BackUp(size - static_cast<int>(part));
  }
}

}  // namespace

bool CrdGenerator::GenerateAll(const std::vector<const google::protobuf::FileDescriptor*>& files,
                               const std::string& /*parameter*/,
                               google::protobuf::compiler::GeneratorContext* context,
                               std::string* error) const {
  std::vector<std::string> errors;
  std::vector<Document> crds;
  for (const auto* file : files) {
    for (const auto* message : KindsOf(*file)) {
      const Kind& kind_options = message->options().GetExtension(kind);
      crds.push_back(CrdOf(*message, &errors));
      WriteFile(context, "crds/" + kind_options.group() + "_" + kind_options.plural() + ".yaml",
                "# Written by api/generator from " + file->name() +
                    ". Do not edit: build the target update-manifests.\n" + ToYaml(crds.back()));
    }
  }
  WriteFile(context, "api.md", ReferencePage(crds));
  for (const auto& line : errors) *error += (error->empty() ? "" : "\n") + line;
  return errors.empty();
}

bool CrdGenerator::Generate(const google::protobuf::FileDescriptor* file,
                            const std::string& parameter,
                            google::protobuf::compiler::GeneratorContext* context,
                            std::string* error) const {
  return GenerateAll({file}, parameter, context, error);
}

}  // namespace bimetal::api
