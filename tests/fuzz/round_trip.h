#pragma once

#include <string>
#include <string_view>

#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "tests/fuzz/fuzz.h"

namespace bimetal::fuzz {

// Reads an object as a server sends it; false where `text` is none. What is written of it must read
// back the same.
template <class Message>
bool ReadObject(std::string_view text, Message* message) {
  if (!kube::FromJson(text, message)) return false;
  if (!kube::CheckJson(text))
    return true;  // parts that the codec only passes on, it does not check
  const std::string json = kube::ToJson(*message);
  Message again;
  Require(kube::FromJson(json, &again).has_value());
  Require(kube::ToJson(again) == json);
  return true;
}

}  // namespace bimetal::fuzz
