"""Models of packages on PyPI, small and with weights drawn at random: what third_party.py exports and trains.

Each entry gives a module, its example inputs by name, and the loss. Nothing is downloaded.
"""

import torch
from torch import nn

CLASSES, BATCH, LENGTH, WORDS = 5, 4, 8, 31


def images(size=32, channels=3):
    return {"x": torch.randn(BATCH, channels, size, size)}


def words():
    # From 2 on: of padding, PyTorch trains no embedding, which ONNX cannot say.
    return {"x": torch.randint(2, WORDS, (BATCH, LENGTH))}


class First(nn.Module):
    """One output of a model that gives many, under the name of its field."""

    def __init__(self, model, field, **fixed):
        super().__init__()
        self.model, self.field, self.fixed = model, field, fixed

    def forward(self, *inputs):
        out = self.model(*inputs, **self.fixed)
        return out[self.field]


def torchvision_model(name, size=32, **arguments):
    import torchvision
    return torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **arguments), images(size), "cross_entropy"


def densenet():
    from torchvision.models import DenseNet
    return DenseNet(growth_rate=4, block_config=(2, 2), num_init_features=8, num_classes=CLASSES), images(), "cross_entropy"


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=CLASSES), images(), "cross_entropy"


def swin():
    from torchvision.models import SwinTransformer
    model = SwinTransformer([4, 4], 8, [2, 2], [2, 2], [2, 2], stochastic_depth_prob=0.0, num_classes=CLASSES)
    return model, images(), "cross_entropy"


def vision_transformer():
    from torchvision.models import VisionTransformer
    return VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=CLASSES), images(), "cross_entropy"


def timm_model(name, size=32, **arguments):
    import timm
    return timm.create_model(name, pretrained=False, num_classes=CLASSES, **arguments), images(size), "cross_entropy"


# Written out, not as one op, since PyTorch's older exporter has that in f32 only.
SIZES = dict(attn_implementation="eager", hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


def bert(kind="Bert", **more):
    import transformers
    config = getattr(transformers, kind + "Config")(vocab_size=WORDS, max_position_embeddings=16, num_labels=CLASSES,
                                                    hidden_dropout_prob=0, attention_probs_dropout_prob=0, **SIZES, **more)
    model = getattr(transformers, kind + "ForSequenceClassification")(config)
    return First(model, "logits"), words(), "cross_entropy"


def distilbert():
    import transformers
    config = transformers.DistilBertConfig(vocab_size=WORDS, max_position_embeddings=16, dim=16, n_layers=2, n_heads=2,
                                           hidden_dim=32, dropout=0, attention_dropout=0, seq_classif_dropout=0,
                                           num_labels=CLASSES, attn_implementation="eager")
    return First(transformers.DistilBertForSequenceClassification(config), "logits"), words(), "cross_entropy"


def picture_transformer(kind):
    import transformers
    config = getattr(transformers, kind + "Config")(image_size=16, patch_size=8, num_labels=CLASSES, hidden_dropout_prob=0,
                                                    attention_probs_dropout_prob=0, **SIZES)
    return First(getattr(transformers, kind + "ForImageClassification")(config), "logits"), images(16), "cross_entropy"


def mixer():
    from timm.models.mlp_mixer import MlpMixer
    return MlpMixer(CLASSES, img_size=32, patch_size=8, num_blocks=2, embed_dim=16), images(), "cross_entropy"


def small_resnet(block):
    from timm.models import resnet
    model = resnet.ResNet(getattr(resnet, block), (1, 1, 1, 1), num_classes=CLASSES, channels=(8, 8, 16, 16))
    return model, images(64), "cross_entropy"


def decoder(kind, **more):
    import transformers
    config = getattr(transformers, kind + "Config")(**{"attn_implementation": "eager", "vocab_size": WORDS, "use_cache": False, **more})
    name = {"GPT2": "GPT2LMHeadModel"}.get(kind, kind + "ForCausalLM")
    return First(getattr(transformers, name)(config), "logits", use_cache=False), words(), "cross_entropy"


def gpt2():
    return decoder("GPT2", n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)


def llama():
    return decoder("Llama", max_position_embeddings=16, num_key_value_heads=1, tie_word_embeddings=True, **SIZES)


def gpt_neox():
    return decoder("GPTNeoX", max_position_embeddings=16, hidden_dropout=0, attention_dropout=0, **SIZES)


def opt():
    return decoder("OPT", hidden_size=16, word_embed_proj_dim=16, ffn_dim=32, num_hidden_layers=2, num_attention_heads=2,
                   max_position_embeddings=16, dropout=0)


def bloom():
    return decoder("Bloom", hidden_size=16, n_layer=2, n_head=2, hidden_dropout=0, attention_dropout=0)


def wav2vec2():
    import transformers
    config = transformers.Wav2Vec2Config(
        conv_dim=(8, 8), conv_kernel=(10, 3), conv_stride=(5, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2, classifier_proj_size=8, num_labels=CLASSES, hidden_dropout=0, attention_dropout=0,
        feat_proj_dropout=0, activation_dropout=0, final_dropout=0, layerdrop=0, apply_spec_augment=False, **SIZES)
    model = First(transformers.Wav2Vec2ForSequenceClassification(config), "logits")
    return model, {"x": torch.randn(BATCH, 400)}, "cross_entropy"


def t5_encoder():
    import transformers
    config = transformers.T5Config(vocab_size=WORDS, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0)
    return First(transformers.T5EncoderModel(config), "last_hidden_state"), words(), "mse"


class Clip(nn.Module):
    """Scores of pictures for texts, which `logit_scale` scales."""

    def __init__(self):
        super().__init__()
        import transformers
        self.clip = transformers.CLIPModel(transformers.CLIPConfig(
            text_config=dict(vocab_size=WORDS, max_position_embeddings=LENGTH, eos_token_id=WORDS - 1, **SIZES),
            vision_config=dict(image_size=16, patch_size=8, **SIZES), projection_dim=8))

    def forward(self, x, pixels):
        return self.clip(input_ids=x, pixel_values=pixels).logits_per_image


def clip():
    return Clip(), {**words(), "pixels": torch.randn(BATCH, 3, 16, 16)}, "mse"


def segmentation(name, **arguments):
    import segmentation_models_pytorch
    model = getattr(segmentation_models_pytorch, name)("resnet18", encoder_weights=None, classes=2, **arguments)
    return model, images(64), "mse"


def monai_unet():
    from monai.networks.nets import UNet
    return UNet(2, 1, 2, (4, 8, 16), (2, 2), num_res_units=1), images(16, 1), "mse"


def monai_segresnet():
    from monai.networks.nets import SegResNet
    return SegResNet(2, 4, 1, 2, norm=("GROUP", {"num_groups": 2})), images(16, 1), "mse"


def x_decoder(**arguments):
    from x_transformers import Decoder, TransformerWrapper
    model = TransformerWrapper(num_tokens=WORDS, max_seq_len=LENGTH, attn_layers=Decoder(dim=16, depth=2, heads=2, **arguments))
    return model, words(), "cross_entropy"


def vit_pytorch_model(name="ViT", **arguments):
    import vit_pytorch
    sizes = dict(image_size=16, patch_size=8, num_classes=CLASSES, dim=16, depth=2, heads=2, mlp_dim=32)
    return getattr(vit_pytorch, name)(**sizes, **arguments), images(16), "cross_entropy"


def cct():
    from vit_pytorch.cct import CCT
    model = CCT(img_size=16, embedding_dim=16, n_conv_layers=1, num_layers=2, num_heads=2, mlp_ratio=2, num_classes=CLASSES,
                positional_embedding="sine", dropout_rate=0.0, attention_dropout=0.0, stochastic_depth_rate=0.0)
    return model, images(16), "cross_entropy"


MODELS = {
    "torchvision-resnet18": lambda: torchvision_model("resnet18", 64),
    "torchvision-mobilenet_v3_small": lambda: torchvision_model("mobilenet_v3_small", 64),
    "torchvision-shufflenet_v2": lambda: torchvision_model("shufflenet_v2_x0_5", 64),
    "torchvision-squeezenet": lambda: torchvision_model("squeezenet1_1"),
    "torchvision-densenet": densenet,
    "torchvision-convnext": convnext,
    "torchvision-swin": swin,
    "torchvision-vit": vision_transformer,
    "timm-vit": lambda: timm_model("vit_tiny_patch16_224", img_size=32, depth=2, embed_dim=16, num_heads=2),
    "timm-mixer": mixer,
    "timm-efficientnet_lite0": lambda: timm_model("efficientnet_lite0", 64),
    "timm-resnet-basic": lambda: small_resnet("BasicBlock"),
    "timm-resnet-bottleneck": lambda: small_resnet("Bottleneck"),
    "timm-ghostnet": lambda: timm_model("ghostnet_050", 64, drop_rate=0.0),
    "timm-resnetv2": lambda: timm_model("resnetv2_50", layers=(1, 1), channels=(16, 32), stem_chs=8),
    "timm-mobilevit": lambda: timm_model("mobilevit_xxs", 64),
    "transformers-bert": bert,
    "transformers-roberta": lambda: bert("Roberta", pad_token_id=0),
    "transformers-albert": lambda: bert("Albert", embedding_size=8),
    "transformers-electra": lambda: bert("Electra", embedding_size=8),
    "transformers-xlm_roberta": lambda: bert("XLMRoberta", pad_token_id=0),
    "transformers-distilbert": distilbert,
    "transformers-vit": lambda: picture_transformer("ViT"),
    "transformers-deit": lambda: picture_transformer("DeiT"),
    "transformers-gpt2": gpt2,
    "transformers-llama": llama,
    "transformers-gpt_neox": gpt_neox,
    "transformers-opt": opt,
    "transformers-bloom": bloom,
    "transformers-wav2vec2": wav2vec2,
    "transformers-t5_encoder": t5_encoder,
    "transformers-clip": clip,
    "smp-unet": lambda: segmentation("Unet", decoder_channels=(16, 8, 8, 8, 8)),
    "smp-fpn": lambda: segmentation("FPN", decoder_dropout=0.0),
    "monai-unet": monai_unet,
    "monai-segresnet": monai_segresnet,
    "x_transformers-rotary": lambda: x_decoder(rotary_pos_emb=True),
    "x_transformers-rmsnorm-glu": lambda: x_decoder(use_rmsnorm=True, ff_glu=True),
    "vit_pytorch-vit": vit_pytorch_model,
    "vit_pytorch-simple_vit": lambda: vit_pytorch_model("SimpleViT"),
    "vit_pytorch-cct": cct,
}
