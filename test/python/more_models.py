"""More models of packages on PyPI, small and with weights drawn at random, in the form of test/onnx/third_party_models.py."""

import torch
from third_party_models import (
    CLASSES, LENGTH, SIZES, WORDS, First, bert, decoder, images, segmentation, timm_model, torchvision_model,
    vit_pytorch_model, words, x_decoder,
)  # fmt: skip
from torch import nn


class Sum(nn.Module):
    """The outputs of a model that has heads beside the last, added."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        out = self.model(x)
        return out if isinstance(out, torch.Tensor) else sum(out)


class Called(nn.Module):
    """A model that takes more than the inputs, and gives a field of what comes out."""

    def __init__(self, model, call):
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *inputs):
        return self.call(self.model, *inputs)


def vgg():
    module, inputs, loss = torchvision_model("vgg11_bn")
    module.classifier = nn.Linear(512 * 7 * 7, CLASSES)
    return module, inputs, loss


def googlenet():
    module, inputs, loss = torchvision_model("googlenet", 64, init_weights=False, aux_logits=True)
    return Sum(module), inputs, loss


def maxvit():
    from torchvision.models import MaxVit
    return MaxVit((32, 32), 8, 4, [8, 16], [1, 1], 8, 0.0, num_classes=CLASSES), images(), "cross_entropy"


def swin_v2():
    from torchvision.models import swin_transformer as swin
    model = swin.SwinTransformer([4, 4], 8, [2, 2], [2, 2], [2, 2], stochastic_depth_prob=0.0, num_classes=CLASSES,
                                 block=swin.SwinTransformerBlockV2, downsample_layer=swin.PatchMergingV2)
    return model, images(), "cross_entropy"


def lraspp():
    from torchvision.models.segmentation import lraspp_mobilenet_v3_large
    return First(lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=2), "out"), images(64), "mse"


def decoder_of(kind, **more):
    """Of Llama's shape."""
    return decoder(kind, **{"max_position_embeddings": 16, "num_key_value_heads": 1, **SIZES, **more})


def encoder_decoder(kind, **more):
    import transformers
    sizes = dict(vocab_size=WORDS, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
                 encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=16, dropout=0, attention_dropout=0,
                 activation_dropout=0, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1)
    config = getattr(transformers, kind + "Config")(**{**sizes, **more})
    name = {"Marian": "MarianMTModel"}.get(kind, kind + "ForConditionalGeneration")
    model = Called(getattr(transformers, name)(config), lambda m, x, y: m(input_ids=x, decoder_input_ids=y, use_cache=False).logits)
    return model, {"x": words()["x"], "y": words()["x"]}, "cross_entropy"


def t5():
    return encoder_decoder("T5", d_kv=8, d_ff=32, num_layers=1, num_decoder_layers=1, num_heads=2, dropout_rate=0)


def whisper():
    import transformers
    config = transformers.WhisperConfig(
        vocab_size=WORDS, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=8, max_source_positions=16, max_target_positions=16, dropout=0,
        attention_dropout=0, pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1, use_cache=False)
    model = Called(transformers.WhisperForConditionalGeneration(config),
                   lambda m, x, y: m(input_features=x, decoder_input_ids=y, use_cache=False).logits)
    return model, {"x": torch.randn(4, 8, 32), "y": words()["x"]}, "cross_entropy"


def hubert():
    import transformers
    config = transformers.HubertConfig(
        conv_dim=(8, 8), conv_kernel=(10, 3), conv_stride=(5, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2, classifier_proj_size=8, num_labels=CLASSES, hidden_dropout=0, attention_dropout=0,
        feat_proj_dropout=0, activation_dropout=0, final_dropout=0, layerdrop=0, apply_spec_augment=False, **SIZES)
    return First(transformers.HubertForSequenceClassification(config), "logits"), {"x": torch.randn(4, 400)}, "cross_entropy"


def mobilebert():
    return bert("MobileBert", embedding_size=8, true_hidden_size=8, intra_bottleneck_size=8)


def picture_model(kind, size=32, **config):
    import transformers
    config = getattr(transformers, kind + "Config")(num_labels=CLASSES, **config)
    return First(getattr(transformers, kind + "ForImageClassification")(config), "logits"), images(size), "cross_entropy"


def diffusers_unet():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    return Called(model, lambda m, x: m(x, 7).sample), images(16), "mse"


def diffusers_conditional():
    from diffusers import UNet2DConditionModel
    model = UNet2DConditionModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, attention_head_dim=4)
    inputs = {**images(16), "states": torch.randn(4, 3, 16)}
    return Called(model, lambda m, x, states: m(x, 7, states).sample), inputs, "mse"


def diffusers_autoencoder():
    from diffusers import AutoencoderKL
    model = AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, latent_channels=2,
                          down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    return First(model, "sample"), images(16), "mse"


def diffusers_dit():
    from diffusers import DiTTransformer2DModel
    model = DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=3, num_layers=2, sample_size=16, patch_size=4,
                                  norm_num_groups=4, num_embeds_ada_norm=10)
    for part in model.modules():
        if hasattr(part, "dropout_prob"):
            part.dropout_prob = 0  # Labels that are left out at random.
    return Called(model, lambda m, x, t: m(x, t, class_labels=torch.tensor([1, 2, 3, 4])).sample), \
        {**images(16), "t": torch.randint(0, 10, (4,))}, "mse"


def monai_net(name, of_pictures=1, size=16, loss="mse", **arguments):
    import monai.networks.nets as nets
    return getattr(nets, name)(**arguments), images(size, of_pictures), loss


def x_encoder_decoder():
    from x_transformers import XTransformer
    model = XTransformer(dim=16, enc_num_tokens=WORDS, enc_depth=1, enc_heads=2, enc_max_seq_len=LENGTH, dec_num_tokens=WORDS,
                         dec_depth=1, dec_heads=2, dec_max_seq_len=LENGTH)
    call = Called(model, lambda m, x, y: m.decoder.net(y, context=m.encoder(x, return_embeddings=True)))
    return call, {"x": words()["x"], "y": words()["x"]}, "cross_entropy"


def x_vision():
    from x_transformers import Encoder, ViTransformerWrapper
    layers = Encoder(dim=16, depth=2, heads=2)
    return ViTransformerWrapper(image_size=16, patch_size=8, num_classes=CLASSES, attn_layers=layers), images(16), "cross_entropy"


MORE_MODELS = {
    "torchvision-mobilenet_v2": lambda: torchvision_model("mobilenet_v2", 64),
    "torchvision-efficientnet_b0": lambda: torchvision_model("efficientnet_b0", 64, stochastic_depth_prob=0.0),
    "torchvision-vgg11_bn": vgg,
    "torchvision-googlenet": googlenet,
    "torchvision-regnet_y": lambda: torchvision_model("regnet_y_400mf", 64),
    "torchvision-mnasnet": lambda: torchvision_model("mnasnet0_5", 64),
    "torchvision-maxvit": maxvit,
    "torchvision-swin_v2": swin_v2,
    "torchvision-lraspp": lraspp,
    "timm-beit": lambda: timm_model("beit_base_patch16_224", img_size=32, depth=2, embed_dim=16, num_heads=2),
    "timm-cait": lambda: timm_model("cait_xxs24_224", img_size=32, depth=2, embed_dim=16, num_heads=2),
    "timm-xcit": lambda: timm_model("xcit_nano_12_p16_224", img_size=32, depth=2, embed_dim=16, num_heads=2),
    "timm-convnextv2": lambda: timm_model("convnextv2_atto", 64, depths=(1, 1, 1, 1), dims=(8, 8, 16, 16)),
    "timm-edgenext": lambda: timm_model("edgenext_xx_small", 64),
    "timm-levit": lambda: timm_model("levit_128s", 224),
    "timm-repvgg": lambda: timm_model("repvgg_a0", 64),
    "timm-eca_resnet": lambda: timm_model("ecaresnet26t", 64),
    "transformers-mistral": lambda: decoder_of("Mistral"),
    "transformers-qwen2": lambda: decoder_of("Qwen2"),
    "transformers-qwen3": lambda: decoder_of("Qwen3", head_dim=8),
    "transformers-gemma": lambda: decoder_of("Gemma", head_dim=8),
    "transformers-gemma2": lambda: decoder_of("Gemma2", head_dim=8),
    "transformers-phi": lambda: decoder_of("Phi", num_key_value_heads=2, resid_pdrop=0, embd_pdrop=0),
    "transformers-olmo": lambda: decoder_of("Olmo"),
    "transformers-stablelm": lambda: decoder_of("StableLm"),
    "transformers-starcoder2": lambda: decoder_of("Starcoder2", residual_dropout=0, embedding_dropout=0),
    "transformers-gpt_neo": lambda: decoder("GPTNeo", hidden_size=16, num_layers=2, num_heads=2, max_position_embeddings=16,
                                            attention_types=[[["global", "local"], 1]], window_size=4, embed_dropout=0,
                                            resid_dropout=0, attention_dropout=0),
    "transformers-gptj": lambda: decoder("GPTJ", n_positions=16, n_embd=16, n_layer=2, n_head=2, rotary_dim=4, resid_pdrop=0,
                                         embd_pdrop=0, attn_pdrop=0),
    "transformers-falcon": lambda: decoder("Falcon", hidden_size=16, num_hidden_layers=2, num_attention_heads=2, hidden_dropout=0,
                                           attention_dropout=0),
    "transformers-codegen": lambda: decoder("CodeGen", n_positions=16, n_ctx=16, n_embd=16, n_layer=2, n_head=4, rotary_dim=4,
                                            resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
    "transformers-mpnet": lambda: bert("MPNet"),
    "transformers-camembert": lambda: bert("Camembert", pad_token_id=0),
    "transformers-squeezebert": lambda: bert("SqueezeBert", embedding_size=16, q_groups=1, k_groups=1, v_groups=1),
    "transformers-deberta_v2": lambda: bert("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], pooler_dropout=0),
    "transformers-convbert": lambda: bert("ConvBert", embedding_size=16, num_groups=1, head_ratio=1),
    "transformers-mobilebert": mobilebert,
    "transformers-t5": t5,
    "transformers-bart": lambda: encoder_decoder("Bart"),
    "transformers-pegasus": lambda: encoder_decoder("Pegasus"),
    "transformers-marian": lambda: encoder_decoder("Marian"),
    "transformers-whisper": whisper,
    "transformers-hubert": hubert,
    "transformers-beit": lambda: picture_model("Beit", 16, image_size=16, patch_size=8, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
                                               drop_path_rate=0.0, **SIZES),
    "transformers-dinov2": lambda: picture_model("Dinov2", 16, image_size=16, patch_size=8, hidden_size=16, num_hidden_layers=2,
                                                 num_attention_heads=2, mlp_ratio=2),
    "transformers-swin": lambda: picture_model("Swin", image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[2, 2],
                                               window_size=2, drop_path_rate=0.0),
    "transformers-convnext": lambda: picture_model("ConvNext", hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1]),
    "transformers-resnet": lambda: picture_model("ResNet", 64, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
                                                 layer_type="basic"),
    "transformers-segformer": lambda: picture_model("Segformer", 64, num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1],
                                                    hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
                                                    num_attention_heads=[1, 2], mlp_ratios=[2, 2], hidden_dropout_prob=0.0,
                                                    attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0,
                                                    drop_path_rate=0.0),
    "transformers-poolformer": lambda: picture_model("PoolFormer", 64, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1],
                                                     drop_path_rate=0.0),
    "smp-linknet": lambda: segmentation("Linknet"),
    "smp-deeplabv3plus": lambda: segmentation("DeepLabV3Plus", decoder_channels=16),
    "smp-pspnet": lambda: segmentation("PSPNet", psp_dropout=0.0, psp_out_channels=16),
    "smp-unetplusplus": lambda: segmentation("UnetPlusPlus", decoder_channels=(16, 8, 8, 8, 8)),
    "diffusers-unet": diffusers_unet,
    "diffusers-conditional_unet": diffusers_conditional,
    "diffusers-autoencoder_kl": diffusers_autoencoder,
    "diffusers-dit": diffusers_dit,
    "monai-basic_unet": lambda: monai_net("BasicUNet", size=32, spatial_dims=2, in_channels=1, out_channels=2,
                                          features=(4, 4, 8, 8, 16, 4)),
    "monai-attention_unet": lambda: monai_net("AttentionUnet", spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16),
                                              strides=(2, 2)),
    "monai-densenet": lambda: monai_net("DenseNet", 1, 32, "cross_entropy", spatial_dims=2, in_channels=1, out_channels=CLASSES,
                                        init_features=8, growth_rate=4, block_config=(2, 2)),
    "monai-vit": lambda: (First(monai_net("ViT", in_channels=1, img_size=16, patch_size=8, spatial_dims=2, hidden_size=16, mlp_dim=32,
                                          num_layers=2, num_heads=2, classification=True, num_classes=CLASSES,
                                          post_activation=None)[0], 0), images(16, 1), "cross_entropy"),
    "x_transformers-alibi": lambda: x_decoder(alibi_pos_bias=True, alibi_num_heads=2),
    "x_transformers-t5_bias": lambda: x_decoder(rel_pos_bias=True),
    "x_transformers-qk_norm": lambda: x_decoder(attn_qk_norm=True, use_scalenorm=True, ff_swish=True, ff_glu=True),
    "x_transformers-encoder_decoder": x_encoder_decoder,
    "x_transformers-vit": x_vision,
    "vit_pytorch-deepvit": lambda: deepvit(),
}


def deepvit():
    from vit_pytorch.deepvit import DeepViT
    model = DeepViT(image_size=16, patch_size=8, num_classes=CLASSES, dim=16, depth=2, heads=2, mlp_dim=32)
    return model, images(16), "cross_entropy"
