# SPDX-License-Identifier: Apache-2.0
"""Client of image v2, for the API."""
