#include <gmock/gmock.h>
#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/generator/crd.h"
#include "api/generator/reference.h"
#include "api/generator/schema.h"
#include "api/generator/yaml.h"
#include "api/meta.pb.h"
#include "api/options.pb.h"

namespace bimetal::api {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A .proto text as protoc would give it to the plug-in, comments included.
class Source {
 public:
  explicit Source(const std::string& body)
      : text_(
            "syntax = \"proto3\";\npackage test;\nimport \"api/meta.proto\";\n"
            "import \"api/options.proto\";\n" +
            body),
        pool_(google::protobuf::DescriptorPool::generated_pool()) {
    // The generated pool must hold the imports.
    static_cast<void>(ObjectMeta::descriptor());
    google::protobuf::io::ArrayInputStream stream(text_.data(), static_cast<int>(text_.size()));
    google::protobuf::io::Tokenizer tokenizer(&stream, nullptr);
    google::protobuf::compiler::Parser parser;
    FileDescriptorProto file;
    EXPECT_TRUE(parser.Parse(&tokenizer, &file)) << text_;
    file.set_name("test.proto");
    file_ = pool_.BuildFile(file);
    EXPECT_NE(file_, nullptr) << text_;
  }

  const FileDescriptor& file() const { return *file_; }
  const Descriptor& message(const std::string& name) const {
    return *file_->FindMessageTypeByName(name);
  }

 private:
  std::string text_;
  google::protobuf::DescriptorPool pool_;
  const FileDescriptor* file_ = nullptr;
};

std::string YamlOf(const std::string& fields, std::vector<std::string>* errors) {
  const Source source("message M {\n" + fields + "}\n");
  return ToYaml(SchemaOf(source.message("M"), {}, errors));
}

std::string YamlOf(const std::string& fields) {
  std::vector<std::string> errors;
  std::string yaml = YamlOf(fields, &errors);
  EXPECT_THAT(errors, IsEmpty());
  return yaml;
}

TEST(SchemaTest, JoinsCommentLinesAndKeepsParagraphs) {
  EXPECT_THAT(
      YamlOf("  // One line\n  // goes on.\n  //\n  // Another.\n  bool a = 1;  // Beside.\n"),
      HasSubstr("description: \"One line goes on.\\nAnother.\\nBeside.\""));
}

TEST(SchemaTest, BoundsEveryString) {
  EXPECT_THAT(YamlOf("// c\nstring a = 1;"), HasSubstr("maxLength: 1024"));
  EXPECT_THAT(YamlOf("// c\nstring a = 1 [(bimetal.api.field).max_length = 7];"),
              HasSubstr("maxLength: 7"));
}

TEST(SchemaTest, WritesBoundsEnumsAndDefaults) {
  const std::string yaml = YamlOf(
      "// c\nint32 a_b = 1 [(bimetal.api.field) = {required: true minimum: -1 maximum: 9 "
      "default_json: \"3\"}];\n"
      "// c\nstring c = 2 [(bimetal.api.field) = {values: \"x\" values: \"y\"}];\n");
  EXPECT_THAT(yaml, HasSubstr("  aB:\n    description: c\n    type: integer\n    format: int32\n"
                              "    minimum: -1\n    maximum: 9\n    default: 3\n"));
  EXPECT_THAT(yaml, HasSubstr("enum:\n    - x\n    - 'y'\n"));
  EXPECT_THAT(yaml, HasSubstr("required:\n- aB\n"));
}

TEST(SchemaTest, MakesQuantitiesIntOrString) {
  const std::string yaml = YamlOf("// c\nstring a = 1 [(bimetal.api.field).format = QUANTITY];");
  EXPECT_THAT(yaml, HasSubstr("x-kubernetes-int-or-string: true"));
  EXPECT_THAT(yaml, testing::Not(HasSubstr("    type: string\n")));
}

TEST(SchemaTest, LeavesRawOutAndKeepsUnknownFields) {
  const std::string yaml =
      YamlOf("// c\nbool a = 1;\nstring raw = 15 [(bimetal.api.field).format = RAW];");
  EXPECT_THAT(yaml, testing::Not(HasSubstr("raw")));
  EXPECT_THAT(yaml, HasSubstr("x-kubernetes-preserve-unknown-fields: true"));
}

TEST(SchemaTest, RequiresTheKeysOfAList) {
  const Source source(
      "message Item {\n// c\nstring name = 1;\n}\n"
      "message M {\n// c\nrepeated Item items = 1 [(bimetal.api.field) = "
      "{max_items: 3 list_map_keys: \"name\"}];\n}\n");
  std::vector<std::string> errors;
  const std::string yaml = ToYaml(SchemaOf(source.message("M"), {}, &errors));
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_THAT(yaml, HasSubstr("      required:\n      - name\n"));
  EXPECT_THAT(
      yaml, HasSubstr("x-kubernetes-list-type: map\n    x-kubernetes-list-map-keys:\n    - name"));
}

TEST(SchemaTest, KeepsRulesOfTheFieldAndOfItsType) {
  const Source source(
      "message Item {\noption (bimetal.api.rules) = {rule: \"type\" message: \"m\"};\n"
      "// c\nbool a = 1;\n}\n"
      "message M {\n// c\nItem item = 1 [(bimetal.api.field).rules = "
      "{rule: \"field\" message: \"m\"}];\n}\n");
  std::vector<std::string> errors;
  const std::string yaml = ToYaml(SchemaOf(source.message("M"), {}, &errors));
  EXPECT_THAT(yaml, HasSubstr("- rule: field\n      message: m\n    - rule: type"));
}

TEST(SchemaTest, SaysWhatNoSchemaCanBeMadeOf) {
  for (const auto& [field, message] : std::vector<std::pair<std::string, std::string>>{
           {"// c\ndouble a = 1;", "type double has no place"},
           {"// c\nbytes a = 1;", "type bytes has no place"},
           {"// c\nrepeated string a = 1;", "a list needs max_items"},
           {"// c\nmap<string, string> a = 1;", "a map needs max_properties"},
           {"// c\nmap<int32, string> a = 1 [(bimetal.api.field).max_properties = 1];",
            "the keys of a map must be strings"},
           {"bool a = 1;", "a field needs a comment"},
           {"// c\nint32 a = 1 [(bimetal.api.field).default_json = \"1.5\"];", "default_json"},
       }) {
    std::vector<std::string> errors;
    YamlOf(field, &errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr(message))) << field;
    EXPECT_THAT(errors.front(), HasSubstr("test.M.a: ")) << field;
  }
}

constexpr char kKind[] =
    "// A thing.\nmessage Thing {\n"
    "  option (bimetal.api.kind) = {group: \"bimetal.dev\" version: \"v1\" kind: \"Thing\" "
    "plural: \"things\" short_names: \"th\" columns: {name: \"A\" type: \"string\" json_path: "
    "\".a\" "
    "priority: 1} scale: {spec_replicas_path: \".spec.n\" status_replicas_path: \".status.n\"}};\n"
    "  bimetal.api.ObjectMeta metadata = 1;\n  // c\n  bool spec = 2;\n}\n"
    "message Other {}\n";

TEST(CrdTest, FindsTheKindsOfTheGroup) {
  const Source source(kKind);
  EXPECT_THAT(KindsOf(source.file()), ElementsAre(&source.message("Thing")));
}

TEST(CrdTest, WritesNamesColumnsAndSubresources) {
  const Source source(kKind);
  std::vector<std::string> errors;
  const std::string yaml = ToYaml(CrdOf(source.message("Thing"), &errors));
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_THAT(yaml, HasSubstr("  name: things.bimetal.dev\n"));
  EXPECT_THAT(yaml, HasSubstr("scope: Cluster"));
  EXPECT_THAT(yaml, HasSubstr("    singular: thing\n    shortNames:\n    - th\n"));
  EXPECT_THAT(yaml, HasSubstr("      jsonPath: .a\n      priority: 1\n"));
  EXPECT_THAT(yaml, HasSubstr("      scale:\n        specReplicasPath: .spec.n\n"));
  EXPECT_THAT(yaml, HasSubstr("          metadata:\n            type: object\n          spec:"));
}

TEST(CrdTest, NamesAKindThatLacksMetadataOrComment) {
  const Source source(
      "message Thing {\n  option (bimetal.api.kind) = {group: \"bimetal.dev\" version: \"v1\" "
      "kind: \"Thing\" plural: \"things\"};\n}\n");
  std::vector<std::string> errors;
  CrdOf(source.message("Thing"), &errors);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("needs the field metadata"), HasSubstr("a comment")));
}

TEST(ReferencePageTest, ListsEveryFieldOnce) {
  const Source source(kKind);
  std::vector<std::string> errors;
  const std::string page = ReferencePage({CrdOf(source.message("Thing"), &errors)});
  EXPECT_THAT(page, HasSubstr("## Thing\n\nA thing.\n"));
  EXPECT_THAT(page, HasSubstr("| `spec` | boolean |  | c |  |\n"));
  EXPECT_THAT(page, testing::Not(HasSubstr("`metadata`")));
}

}  // namespace
}  // namespace bimetal::api
