# SPDX-License-Identifier: Apache-2.0
"""What travels between processes and what is stored: plain data, no SQL, no RPC, no options."""
