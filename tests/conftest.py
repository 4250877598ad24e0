# SPDX-License-Identifier: Apache-2.0
"""How property tests run everywhere: no example fails for being slow on a busy machine."""

from hypothesis import settings

settings.register_profile("novalite", deadline=None, max_examples=60)
settings.load_profile("novalite")
