#include <google/protobuf/compiler/plugin.h>

#include "api/generator/plugin.h"

int main(int argc, char* argv[]) {
  const bimetal::api::CrdGenerator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
