#include "hearth/trainer/job/signal_effects.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

TEST(SignalEffectsTest, EachSignalHasItsConfiguredEffect) {
  SignalEffects effects(SignalEffect::kStop, SignalEffect::kSnapshot);
  EXPECT_EQ(effects.Take(), SignalEffect::kNone);
  raise(SIGHUP);
  EXPECT_EQ(effects.Take(), SignalEffect::kSnapshot);
  EXPECT_EQ(effects.Take(), SignalEffect::kNone);
  raise(SIGHUP);
  raise(SIGINT);
  EXPECT_EQ(effects.Take(), SignalEffect::kStop);
}

TEST(SignalEffectsTest, ASignalWithoutAnEffectIsIgnored) {
  SignalEffects effects(SignalEffect::kNone, SignalEffect::kNone);
  raise(SIGINT);  // by default, either signal would end the process
  raise(SIGHUP);
  EXPECT_FALSE(effects.StopIsDue());
  EXPECT_EQ(effects.Take(), SignalEffect::kNone);
}

TEST(SignalEffectsTest, RestoresTheOldHandlers) {
  struct sigaction before {
  }, after{};
  sigaction(SIGINT, nullptr, &before);
  { SignalEffects effects(SignalEffect::kStop, SignalEffect::kNone); }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(SignalEffectsTest, RejectsUnknownEffectsByFlag) {
  EXPECT_EQ(ParseSignalEffect("sigint_effect", "none"), SignalEffect::kNone);
  EXPECT_THROW(ParseSignalEffect("sigint_effect", "halt"), Error);
}

}  // namespace
}  // namespace hearth::trainer
