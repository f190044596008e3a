"""Devices and the links between them: the catalogue, `Topology`, and what TensorFlow sees here."""

from tf_regal.devices.catalogue import DeviceModel, LinkModel, device_model, device_models, link_model, link_models
from tf_regal.devices.grappler import device_properties
from tf_regal.devices.spec import DeviceSpec, Link
from tf_regal.devices.topology import Topology

__all__ = (
    "DeviceModel",
    "DeviceSpec",
    "Link",
    "LinkModel",
    "Topology",
    "device_model",
    "device_models",
    "device_properties",
    "link_model",
    "link_models",
)
