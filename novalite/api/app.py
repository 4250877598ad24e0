# SPDX-License-Identifier: Apache-2.0
"""The Compute API as one WSGI application: ROUTES is all there is.

Made by ``novalite-api`` and by :mod:`novalite.wsgi`. Making it opens no connection.
"""

from typing import Any

import falcon
from oslo_config import cfg

from novalite.api import auth, errors, http, middleware, policy
from novalite.api.parts import Computes, Images, Networks, Parts, Resource, Schedulers, Volumes
from novalite.api.resources import (
    aggregates,
    availability_zones,
    capacity,
    explain,
    flavor_access,
    flavor_extra_specs,
    flavors,
    hypervisors,
    instance_actions,
    ips,
    keypairs,
    limits,
    quota_class_sets,
    quota_sets,
    server_actions,
    server_groups,
    server_metadata,
    server_tags,
    server_topology,
    servers,
    services,
    simple_tenant_usage,
    versions,
    volume_attachments,
    why_not,
)
from novalite.api.wakeup import Wakeup
from novalite.db import engine

# URL -> resource. The noun names the file in resources, schemas and views. Every URL below /v2.1
# is also served with the project id in front (/v2.1/PROJECT/servers); see middleware.py.
ROUTES: dict[str, type[Resource]] = {
    "/": versions.VersionsResource,
    "/v2": versions.LegacyVersionResource,
    "/v2/": versions.LegacyVersionResource,
    "/v2.1": versions.VersionResource,
    "/v2.1/": versions.VersionResource,
    "/v2.1/servers": servers.ServersResource,
    "/v2.1/servers/detail": servers.ServersDetailResource,
    "/v2.1/servers/{server_id}": servers.ServerResource,
    "/v2.1/servers/{server_id}/action": server_actions.ServerActionResource,
    "/v2.1/servers/{server_id}/explain": explain.ExplainResource,
    "/v2.1/servers/{server_id}/why-not": why_not.WhyNotResource,
    "/v2.1/servers/{server_id}/ips": ips.IpsResource,
    "/v2.1/servers/{server_id}/ips/{network}": ips.IpResource,
    "/v2.1/servers/{server_id}/metadata": server_metadata.ServerMetadataResource,
    "/v2.1/servers/{server_id}/metadata/{key}": server_metadata.ServerMetadataItemResource,
    "/v2.1/servers/{server_id}/tags": server_tags.ServerTagsResource,
    "/v2.1/servers/{server_id}/tags/{tag}": server_tags.ServerTagResource,
    "/v2.1/servers/{server_id}/topology": server_topology.ServerTopologyResource,
    "/v2.1/servers/{server_id}/os-instance-actions": instance_actions.InstanceActionsResource,
    "/v2.1/servers/{server_id}/os-instance-actions/{request_id}": (
        instance_actions.InstanceActionResource
    ),
    "/v2.1/servers/{server_id}/os-volume_attachments": (
        volume_attachments.VolumeAttachmentsResource
    ),
    "/v2.1/servers/{server_id}/os-volume_attachments/{volume_id}": (
        volume_attachments.VolumeAttachmentResource
    ),
    "/v2.1/flavors": flavors.FlavorsResource,
    "/v2.1/flavors/detail": flavors.FlavorsDetailResource,
    "/v2.1/flavors/{flavor_id}": flavors.FlavorResource,
    "/v2.1/flavors/{flavor_id}/action": flavor_access.FlavorActionResource,
    "/v2.1/flavors/{flavor_id}/os-flavor-access": flavor_access.FlavorAccessResource,
    "/v2.1/flavors/{flavor_id}/os-extra_specs": flavor_extra_specs.FlavorExtraSpecsResource,
    "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}": flavor_extra_specs.FlavorExtraSpecResource,
    "/v2.1/os-services": services.ServicesResource,
    "/v2.1/os-services/{service_id}": services.ServiceResource,
    "/v2.1/os-hypervisors": hypervisors.HypervisorsResource,
    "/v2.1/os-hypervisors/detail": hypervisors.HypervisorsDetailResource,
    "/v2.1/os-hypervisors/statistics": hypervisors.HypervisorStatisticsResource,
    "/v2.1/os-hypervisors/{hypervisor_id}": hypervisors.HypervisorResource,
    "/v2.1/os-hypervisors/{hypervisor_id}/uptime": hypervisors.HypervisorUptimeResource,
    "/v2.1/os-hypervisors/{hypervisor_id}/search": hypervisors.HypervisorSearchResource,
    "/v2.1/os-hypervisors/{hypervisor_id}/servers": hypervisors.HypervisorServersResource,
    "/v2.1/os-keypairs": keypairs.KeypairsResource,
    "/v2.1/os-keypairs/{keypair_name}": keypairs.KeypairResource,
    "/v2.1/os-server-groups": server_groups.ServerGroupsResource,
    "/v2.1/os-server-groups/{server_group_id}": server_groups.ServerGroupResource,
    "/v2.1/os-simple-tenant-usage": simple_tenant_usage.TenantUsagesResource,
    "/v2.1/os-simple-tenant-usage/{tenant_id}": simple_tenant_usage.TenantUsageResource,
    "/v2.1/novalite/capacity": capacity.CapacityResource,
    "/v2.1/limits": limits.LimitsResource,
    "/v2.1/os-quota-sets/{tenant_id}": quota_sets.QuotaSetResource,
    "/v2.1/os-quota-sets/{tenant_id}/defaults": quota_sets.QuotaSetDefaultsResource,
    "/v2.1/os-quota-sets/{tenant_id}/detail": quota_sets.QuotaSetDetailResource,
    "/v2.1/os-quota-class-sets/{quota_class}": quota_class_sets.QuotaClassSetResource,
    "/v2.1/os-aggregates": aggregates.AggregatesResource,
    "/v2.1/os-aggregates/{aggregate_id}": aggregates.AggregateResource,
    "/v2.1/os-aggregates/{aggregate_id}/action": aggregates.AggregateActionResource,
    "/v2.1/os-availability-zone": availability_zones.AvailabilityZonesResource,
    "/v2.1/os-availability-zone/detail": availability_zones.AvailabilityZonesDetailResource,
}


def nouns() -> frozenset[str]:
    """Return the first path segments below /v2.1; a project id is never one of them."""
    return frozenset(url.split("/")[2] for url in ROUTES if url.count("/") > 1) - {""}


def make_app(
    conf: cfg.ConfigOpts,
    database: engine.Database,
    *,
    images: Images,
    networks: Networks,
    volumes: Volumes,
    computes: Computes,
    schedulers: Schedulers,
    wakeup: Wakeup,
    authenticator: auth.Authenticator | None = None,
    rules: policy.Policy | None = None,
) -> "falcon.App[Any, Any]":
    """Return the application."""
    parts = Parts(
        conf=conf,
        database=database,
        images=images,
        networks=networks,
        volumes=volumes,
        computes=computes,
        schedulers=schedulers,
        wakeup=wakeup,
        policy=rules or policy.Policy(conf),
    )
    before = middleware.RequestMiddleware(
        conf, authenticator or auth.make(conf), nouns(), parts.policy
    )
    app: falcon.App[Any, Any] = falcon.App(request_type=http.Request, middleware=[before])
    errors.register(app)
    for url, resource in ROUTES.items():
        app.add_route(url, resource(parts))
    return app
