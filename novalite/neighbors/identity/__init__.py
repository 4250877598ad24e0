# SPDX-License-Identifier: Apache-2.0
"""Identity v3: tokens, the catalogue, domains, projects, users, roles and who has them where."""
