# SPDX-License-Identifier: Apache-2.0
"""What the command line thinks: explanations, questions, checks, comparisons and the audit.

Programs in cmd/ call it; no service does. The sums themselves are in objects/.
"""
