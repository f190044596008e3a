"""The architecture families of tf.keras.applications, with random weights."""

import tensorflow as tf

from benchmarks.zoo.registry import LABEL, Model, class_loss, images

_apps = tf.keras.applications
_CLASSES = 100
_PUBLISHED = "as published"


def _application(name, make, source, config=None, size=224, until=None, **options):
    """make: an application. until: name of the layer after which the classifier follows; None: the whole network."""

    def build():
        whole = make(input_shape=(size, size, 3), weights=None, classes=_CLASSES, classifier_activation=None)
        if until is None:
            return whole
        x = tf.keras.layers.GlobalAveragePooling2D()(whole.get_layer(until).output)
        return tf.keras.Model(whole.input, tf.keras.layers.Dense(_CLASSES)(x))

    config = config or (f"up to the layer {until}" if until else _PUBLISHED)
    return Model(
        name, build, images(size), f"{config}; {size} × {size}, {_CLASSES} classes", source, targets=LABEL, loss=class_loss,
        **{"training": (16, 64), **options},
    )


_RESNET, _RESNET_V2 = "He et al., CVPR 2016", "He et al., ECCV 2016"
_VGG = "Simonyan and Zisserman, ICLR 2015"
_NASNET = "Zoph et al., CVPR 2018"

MODELS = {
    "resnet": (
        _application("resnet50", _apps.ResNet50, _RESNET),
        _application("resnet101v2-c4", _apps.ResNet101V2, _RESNET_V2, until="conv4_block4_out"),
        _application("resnet50-c3", _apps.ResNet50, _RESNET, until="conv3_block4_out", size=160, adam="keras"),
    ),
    "vgg": (
        _application("vgg16", _apps.VGG16, _VGG),
        _application("vgg19", _apps.VGG19, _VGG, adam="keras"),
    ),
    "mobilenet": (
        _application("mobilenet", _apps.MobileNet, "Howard et al., 2017", training=(32, 128)),
        _application("mobilenetv2-b10", _apps.MobileNetV2, "Sandler et al., CVPR 2018", until="block_10_project_BN", training=(32, 128)),
        _application("mobilenetv3small", _apps.MobileNetV3Small, "Howard et al., ICCV 2019", training=(32, 128)),
        _application("mobilenetv3large-b6", _apps.MobileNetV3Large, "Howard et al., ICCV 2019", until="expanded_conv_6_project_bn", training=(32, 128)),
    ),
    "densenet": (
        _application("densenet121-d2", _apps.DenseNet121, "Huang et al., CVPR 2017", until="pool3_conv"),
        _application("densenet121-d1", _apps.DenseNet121, "Huang et al., CVPR 2017", until="pool2_conv", adam="keras"),
    ),
    "efficientnet": (
        _application("efficientnetb0-b4", _apps.EfficientNetB0, "Tan and Le, ICML 2019", until="block4b_add"),
        _application("efficientnetv2b0-b4", _apps.EfficientNetV2B0, "Tan and Le, ICML 2021", until="block4b_add"),
    ),
    "convnext": (
        _application("convnexttiny-s1", _apps.ConvNeXtTiny, "Liu et al., CVPR 2022", until="convnext_tiny_downsampling_block_1"),
        _application("convnexttiny", _apps.ConvNeXtTiny, "Liu et al., CVPR 2022"),
    ),
    "xception": (_application("xception", _apps.Xception, "Chollet, CVPR 2017", size=299),),
    "nasnet": (
        _application("nasnetmobile-n0", _apps.NASNetMobile, _NASNET, until="normal_concat_0"),
        _application("nasnetmobile-n3", _apps.NASNetMobile, _NASNET, until="normal_concat_3"),
    ),
    "inception": (
        _application("inceptionv3-m1", _apps.InceptionV3, "Szegedy et al., CVPR 2016", until="mixed1", size=299),
        _application("inceptionv3-m4", _apps.InceptionV3, "Szegedy et al., CVPR 2016", until="mixed4", size=299),
        _application("inceptionresnetv2-b2", _apps.InceptionResNetV2, "Szegedy et al., AAAI 2017", until="block35_2_ac", size=299),
    ),
}
