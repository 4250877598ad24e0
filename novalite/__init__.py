# SPDX-License-Identifier: Apache-2.0
"""novalite: an OpenStack Nova that you can hold in your hand."""
