#include "core/base/shared.h"

#include <string>

#include <gtest/gtest.h>

namespace bimetal {
namespace {

TEST(Shared, CopiesAreOneObjectUntilOneIsEdited) {
  const Shared<std::string> first(std::string("abc"));
  Shared<std::string> second = first;
  EXPECT_EQ(&*first, &*second);
  second.Edit() += "d";
  EXPECT_EQ(*first, "abc");
  EXPECT_EQ(*second, "abcd");
}

TEST(Shared, WhatNobodyElseHoldsIsEditedInPlace) {
  Shared<std::string> one("abc");
  const std::string* object = &*one;
  one.Edit() = "d";
  EXPECT_EQ(&*one, object);
  EXPECT_EQ(one->size(), 1U);
}

}  // namespace
}  // namespace bimetal
