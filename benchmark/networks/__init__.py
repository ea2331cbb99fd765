"""Pretrained networks: weights, the split into a frozen prefix and a trained tail, and the feature store."""

from benchmark.networks.backbone import SUGGESTED, Backbone, HeadInit
