#include "kube/config/yaml_check.h"

#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace bimetal::kube {
namespace {

tl::unexpected<Error> WrongAt(const YAML::Mark& mark, const std::string& what) {
  return Fail(ErrorCode::kInvalid, "line " + std::to_string(mark.line + 1) + ": " + what);
}

// Keeps where the last document began; what is in it does not matter here.
class Begin final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { at = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  YAML::Mark at = YAML::Mark::null_mark();
};

}  // namespace

Status CheckYaml(const std::string& yaml) {
  try {
    std::istringstream stream(yaml);
    YAML::Parser parser(stream);
    Begin begin;
    for (int last = -1; parser.HandleNextDocument(begin); last = begin.at.pos) {
      // Nothing was taken for the document before this one, and nothing ever will be.
      if (begin.at.pos == last) return WrongAt(begin.at, "no document begins like this");
    }
  } catch (const YAML::ParserException& e) {
    return WrongAt(e.mark, e.msg);
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInvalid, e.what());
  }
  return {};
}

}  // namespace bimetal::kube
