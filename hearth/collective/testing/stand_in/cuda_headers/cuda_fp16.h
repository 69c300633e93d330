// Included by nccl.h, which uses nothing from it.
#pragma once
