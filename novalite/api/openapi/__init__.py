# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 document of what is served, made from the code that serves it.

``novalite-manage api openapi`` prints it; the fuzzing tests read it. No request comes here.
"""
