# SPDX-License-Identifier: Apache-2.0
"""Network v2.0: networks, subnets, ports, security groups, routers, floating IPs, quotas."""
