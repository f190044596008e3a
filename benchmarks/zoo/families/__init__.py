"""Every declared model, by name. One module per group of families; each has MODELS, {family: (registry.Model, …)}."""

import importlib
import pkgutil

FAMILIES = {}
for _module in pkgutil.iter_modules(__path__):
    for _family, _models in importlib.import_module(f"{__name__}.{_module.name}").MODELS.items():
        FAMILIES[_family] = (*FAMILIES.get(_family, ()), *_models)

MODELS = {model.name: model for models in FAMILIES.values() for model in models}
