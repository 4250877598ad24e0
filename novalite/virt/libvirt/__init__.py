# SPDX-License-Identifier: Apache-2.0
"""The libvirt driver, from the top: ``driver`` (what compute calls), ``host`` (one connection),
``guest`` (one domain), ``config`` (the XML), and ``fakelibvirt`` with ``fakestore``: a stand-in
for the libvirt bindings whose guests only play. Nothing above ``fakelibvirt`` knows which of the
two it works on.
"""
